// Drawn icons for the page's own controls and the apps' faces: they look the same where no emoji font is installed.

const PATHS = {
  mag: ["M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Z", "M15.5 15.5 21 21"],
  rotating_light: ["M6 18v-5a6 6 0 0 1 12 0v5", "M4 21h16v-3H4z", "M12 2v2M4 5l1.5 1.5M20 5l-1.5 1.5M12 10v4"],
  bar_chart: ["M4 21V11M10 21V4M16 21v-8M22 21H2"],
  pager: ["M4 6h16v12H4z", "M7 9h10v4H7z", "M8 16h1M12 16h1M16 16h1"],
  robot_face: ["M5 8h14v11H5z", "M12 4v4M9 12v2M15 12v2M9 17h6M3 12v4M21 12v4"],
  clip: ["M20 11.5 12 19.5a5 5 0 0 1-7-7L13.5 4a3.4 3.4 0 0 1 4.8 4.8L10 17a1.7 1.7 0 0 1-2.4-2.4L15 7.2"],
  thread: ["M4 5h16v11H10l-4 4v-4H4z"],
  eye: ["M2 12s4-6.5 10-6.5S22 12 22 12s-4 6.5-10 6.5S2 12 2 12Z", "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z"],
  smile: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M8.5 10v1M15.5 10v1M8 14.5c2 3 6 3 8 0"],
  dots: ["M12 5v.5M12 12v.5M12 19v.5"],
  lock: ["M6 11h12v9H6z", "M8.5 11V8a3.5 3.5 0 0 1 7 0v3"],
  swap: ["M8 4v16M8 4 4.500 8M8 4l3.500 4", "M16 20V4M16 20l-3.500-4M16 20l3.500-4"],
  half: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M12 3v18M15 4.500v15M18 6.500v11"],
  close: ["M6 6l12 12M18 6 6 18"],
  bolt: ["M13 2 5 14h6l-1 8 8-12h-6z"],
  pushpin: ["M9 3h6l-1 7 4 4H6l4-4z", "M12 14v7"],
  bulb: ["M9 17a6.500 6.500 0 1 1 6 0v1.500H9z", "M10 21.500h4"],
  scales: ["M12 3v18M7 21h10M4 7h16", "M4 7l-2.500 6a3 3 0 0 0 5 0z", "M20 7l-2.500 6a3 3 0 0 0 5 0z"],
  eyes: ["M2 12s4-6.5 10-6.5S22 12 22 12s-4 6.5-10 6.5S2 12 2 12Z", "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z"],
  white_check_mark: ["M4 4h16v16H4z", "M8 12l3 3 5.500-6.500"],
  ballot_box_with_check: ["M4 4h16v16H4z", "M8 12l3 3 5.500-6.500"],
  heavy_check_mark: ["M5 12.500l5 5L20 7"],
  x: ["M6 6l12 12M18 6 6 18"],
  warning: ["M12 4 2.500 20h19z", "M12 10v5M12 17.500v.2"],
  hammer_and_wrench: ["M14 6l4 4-9.500 9.500a2 2 0 0 1-3-3z", "M13 5a5 5 0 0 1 6.500 6.500"],
  hourglass_flowing_sand: ["M7 3h10M7 21h10", "M8 3c0 5 8 6 8 9s-8 4-8 9M16 3c0 5-8 6-8 9s8 4 8 9"],
  memo: ["M6 3h9l4 4v14H6z", "M9 10h7M9 14h7M9 18h4"],
  link: ["M10 14a4 4 0 0 0 5.500 0l4-4a4 4 0 0 0-5.500-5.500L12.500 6", "M14 10a4 4 0 0 0-5.500 0l-4 4a4 4 0 0 0 5.500 5.500L11.500 18"],
  no_entry: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M7.500 12h9"],
  grey_question: ["M8.500 8.500a3.500 3.500 0 1 1 5 3.200c-1 .6-1.500 1.200-1.500 2.300v.5", "M12 18v.4"],
  question: ["M8.500 8.500a3.500 3.500 0 1 1 5 3.200c-1 .6-1.500 1.200-1.500 2.300v.5", "M12 18v.4"],
  fire_extinguisher: ["M9 8h6v13H9z", "M12 8V4M8 5h8M16 5l3 3"],
  heavy_plus_sign: ["M12 5v14M5 12h14"],
  heavy_minus_sign: ["M5 12h14"],
  information_source: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M12 11v5M12 8v.3"],
  point_left: ["M20 12H5M10 6l-6 6 6 6"],
  dart: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z", "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z", "M12 12v.2"],
  chart_with_upwards_trend: ["M3 20h18M3 20V4", "M6 16l5-5 3 3 6-7"],
  page_facing_up: ["M6 3h9l4 4v14H6z", "M14 3v5h5"],
  hourglass: ["M7 3h10M7 21h10", "M8 3c0 5 8 6 8 9s-8 4-8 9M16 3c0 5-8 6-8 9s8 4 8 9"],
  alarm_clock: ["M12 6a7 7 0 1 0 0 14 7 7 0 0 0 0-14Z", "M12 9v4l3 2M4 6l3-3M20 6l-3-3"],
  repeat: ["M4 11a5 5 0 0 1 5-5h10M16 3l3 3-3 3", "M20 13a5 5 0 0 1-5 5H5M8 21l-3-3 3-3"],
  white_large_square: ["M5 5h14v14H5z"],
  list: ["M4 6h16M4 12h16M4 18h16"],
  shield: ["M12 3 5 6v6c0 4 3 7 7 9 4-2 7-5 7-9V6z"],
  no_bell: ["M7 17v-6a5 5 0 0 1 10 0v6z", "M10 20.500h4", "M4 4l16 16"],
  construction: ["M3 7h18v6H3z", "M8 7l-4 6M14 7l-4 6M20 7l-4 6", "M6 13v7M18 13v7"],
  pencil2: ["M4 20l1-5L16 4l4 4L9 19z", "M14 6l4 4"],
  black_right_pointing_double_triangle_with_vertical_bar: ["M4 6l7 6-7 6zM11 6l7 6-7 6z", "M20 6v12"],
  zap: ["M13 2 5 14h6l-1 8 8-12h-6z"],
};

export const hasIcon = (name) => name in PATHS;

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon-drawing");
  svg.setAttribute("aria-hidden", "true");
  for (const d of PATHS[name]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

// Whether this browser draws emoji in colour. Without such a font they come out as boxes.
export const drawsEmoji = (() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 20;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) return true;
  context.font = "16px sans-serif";
  context.fillStyle = "#000";
  context.fillText("\u{1F534}", 0, 16);
  const { data } = context.getImageData(0, 0, 20, 20);
  for (let at = 0; at < data.length; at += 4) if (data[at] > 120 && data[at + 3] > 0) return true;
  return false;
})();
