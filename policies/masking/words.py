"""Words right before a number that say what it is, in six languages."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

_WORD = re.compile(r"[^\W\d_]+")
_BEFORE = re.compile("[0-9\uff10-\uff19\n]")

_NO_WORD = " \t\u00a0\u3000.,:;-()+"

NEAR = 32
"""Characters before a number in which such a word may stand, with no other number between."""


class Words(NamedTuple):
    """whole: words that stand alone; parts: what may stand anywhere, as in inflected words and in
    languages that write no spaces. All in lower case."""

    whole: frozenset[str]
    parts: Collection[str]

    def are_in(self, said: str) -> bool:
        """Whether one of them stands in a text in lower case."""
        if any(part in said for part in self.parts):
            return True
        return not self.whole.isdisjoint(_WORD.findall(said))


def said_before(text: str, at: int) -> str:
    """What stands before a number that begins at `at`, in lower case, back to the last digit or
    line; "" where no word can be in it."""
    near = text[max(0, at - NEAR) : at]
    said = _BEFORE.split(near)[-1]
    return said.lower() if said.strip(_NO_WORD) else ""


TELEPHONE = Words(
    frozenset(
        "tel telf tlf telephone telefono mobile movil móvil celular cell call dial dialled llama"
        " llamar fax sms viber тел моб".split()
    ),
    (
        "phone",
        "whatsapp",
        "text me",
        "my number",
        "teléf",
        "llám",
        "mi número",
        "mi numero",
        "телефон",
        "звон",
        "мой номер",
        "ватсап",
        "вотсап",
        "電話",
        "携帯",
        "でんわ",
        "ケータイ",
        "电话",
        "手机",
        "致电",
        "拨打",
        "전화",
        "연락처",
        "휴대폰",
        "핸드폰",
        "내 번호",
    ),
)

COUNTED = Words(
    frozenset(("sku", "item", "id", "code", "no", "код", "трек", "артикул", "счет", "счёт", "сч")),
    (
        "order",
        "invoice",
        "ticket",
        "tracking",
        "shipment",
        "parcel",
        "receipt",
        "pedido",
        "factura",
        "envío",
        "envio",
        "código",
        "codigo",
        "заказ",
        "накладн",
        "注文",
        "伝票",
        "追跡",
        "受付",
        "订单",
        "快递",
        "运单",
        "单号",
        "编号",
        "주문",
        "송장",
        "운송장",
        "접수",
        "#",
        "№",
    ),
)
"""What is counted: a number without borders is then an order's, not a person's."""

TAXPAYER = Words(frozenset(("инн", "inn")), ())
PASSPORT = Words(frozenset(("серия", "серии", "серию")), ("паспорт", "passport"))
SOCIAL = Words(frozenset(("ssn",)), ("social security",))
