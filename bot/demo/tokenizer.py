"""Byte-pair tokenizer of the demo service: small, real, and paid for in CPU time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

_CORPUS = (
    "the order has been shipped and will arrive within three working days "
    "please confirm your address before the parcel leaves the warehouse "
    "our customer service answers every question about delivery and payment "
    "a refund is made to the card that was used for the purchase "
    "the translation of this page was made by a machine and may contain errors "
    "thank you for your patience and have a pleasant evening "
)

_GLOSSARY = {
    "the": "",
    "order": "订单",
    "has": "已",
    "been": "",
    "shipped": "发货",
    "and": "并",
    "will": "将",
    "arrive": "到达",
    "within": "在",
    "three": "三",
    "working": "工作",
    "days": "日内",
    "please": "请",
    "confirm": "确认",
    "your": "您的",
    "address": "地址",
    "before": "之前",
    "parcel": "包裹",
    "leaves": "离开",
    "warehouse": "仓库",
    "customer": "客户",
    "service": "服务",
    "delivery": "配送",
    "payment": "付款",
    "refund": "退款",
    "card": "卡",
    "purchase": "购买",
    "thank": "感谢",
    "you": "您",
    "patience": "耐心",
    "evening": "晚上",
}


class Tokenizer:
    """Byte-pair merges learnt once from a small corpus.

    >>> tokenizer = Tokenizer()
    >>> tokenizer.decode(tokenizer.encode("the order has been shipped"))
    'the order has been shipped'
    """

    def __init__(self, merges: int = 200) -> None:
        self._ranks = _learn_merges(_CORPUS, merges)

    def encode(self, text: str) -> list[str]:
        """Token pieces of `text`; a word boundary is a piece that ends in a space."""
        pieces: list[str] = []
        for word in text.lower().split():
            pieces.extend(self._merge([*word, " "]))
        return pieces

    def decode(self, pieces: list[str]) -> str:
        """The text that the pieces were made from, white space normalised."""
        return "".join(pieces).rstrip()

    def translate(self, pieces: list[str]) -> str:
        """The words of the glossary in Chinese, the others as they are."""
        words = self.decode(pieces).split()
        return "".join(_GLOSSARY.get(word, f" {word} ") for word in words).strip()

    def _merge(self, symbols: list[str]) -> list[str]:
        while len(symbols) > 1:
            ranked = [
                (self._ranks.get((left, right), len(self._ranks)), index)
                for index, (left, right) in enumerate(pairwise(symbols))
            ]
            rank, index = min(ranked)
            if rank == len(self._ranks):
                break
            symbols[index : index + 2] = [symbols[index] + symbols[index + 1]]
        return symbols


def _learn_merges(corpus: str, count: int) -> dict[tuple[str, str], int]:
    words = Counter((*word, " ") for word in corpus.split())
    ranks: dict[tuple[str, str], int] = {}
    while len(ranks) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for symbols, seen in words.items():
            for pair in pairwise(symbols):
                pairs[pair] += seen
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        ranks[best] = len(ranks)
        words = Counter({_join(symbols, best): seen for symbols, seen in words.items()})
    return ranks


def _join(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined: list[str] = []
    for symbol in symbols:
        if joined and (joined[-1], symbol) == pair:
            joined[-1] += symbol
        else:
            joined.append(symbol)
    return tuple(joined)
