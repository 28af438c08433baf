"""What probes stand on: /proc, cgroups, the kernel log, service processes, stacks, metrics pages and NVML."""
