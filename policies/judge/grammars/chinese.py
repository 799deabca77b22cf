"""Who did what in Chinese: the subject is named once, and clauses without one go on with it."""

import re

from policies.judge.grammars.grammar import NEVER, Grammar
from policies.judge.numbers import values
from policies.judge.reading import HAN, words

_RUN = re.compile(f"[{HAN}]+")
_FUNCTION = re.compile(
    "[的了是在我你您他她它们們这這那就也都和与與跟对對把被给給向从從到去来來会會要能可以不没沒有无無很太还還又再"
    "着著过過吗嗎呢吧啊呀嘛个個些么麼为為因所而且但或说說问問想让讓请請谢謝之其已经經于於则則将將并並自己正]"
)
_MANNERS = frozenset(
    "表示 告诉 告訴 觉得 覺得 喜欢 喜歡 今天 明天 昨天 今年 去年 明年 时候 時候 现在 現在 一起"
    " 朋友 家人 最近"
    " 希望 开始 開始 非常 真的 真是 照片 分享 聊到 提到 决定 決定 打算 准备 準備 计划 計劃 重要"
    " 高兴 高興 开心"
    " 開心 激动 激動 东西 東西 时间 時間 每天 每周 上周 下周 上个 下个 星期 周末 週末 一直 一个"
    " 一個 一次 一些"
    " 第一 如果 因为 因為 所以 但是 感到 支持 知道 看到 听到 聽到 认为 認為 介绍 介紹 两人 兩人"
    " 双方 那个 这个".split()
)
_NAME = r"(?:{name})"


def _matters(text: str) -> set[str]:
    found = {word[:5] for word in words(text) if word.isascii() and len(word) >= 4}
    found |= {figure for figure in values(text) if len(figure) > 1}
    for run in _RUN.findall(text):
        for piece in _FUNCTION.split(run):
            found.update(piece[at : at + 2] for at in range(len(piece) - 1))
    return found - _MANNERS


CHINESE = Grammar(
    lead=r"\W*(?:(?:(?!{name})[^,;]){{1,30}}[,;] ?|而|但|后来|後來|然后|同时|于是|最后|接着)?",
    subject=rf"(?:(?P<they>两人|兩人|他们|他們|她们|她們|二人|双方|雙方)"
    rf"|(?P<first>{_NAME})(?:[和与與跟、](?P<second>{_NAME}))?)",
    joint=(
        r"[,;] ?(?:而|但|但是|后来|後來|然后|然後|同时|同時|于是|最后|最後|接着|不过"
        r"|不過)?(?=(?:{name})(?!的))"
        r"|(?:而|但)(?=(?:{name})(?!的))|[,;] ?(?=[他她]|对方|對方|两人|兩人|双方|雙方)"
    ),
    further=NEVER,
    told_them=r"^(?:告诉|告訴|跟|对|對|向)(?:{name})(?:说|說|表示|讲|講|提到|透露)?",
    answers=re.compile(
        "问|問|夸|誇|称赞|稱讚|赞|讚|同意|赞成|贊成|建议|建議|劝|勸|羡慕|羨慕|感叹|感嘆|鼓励"
        "|鼓勵|安慰|祝|答应|答應"
        "|提议|提議|提醒|佩服|惊讶|驚訝|好奇|觉得|覺得|认为|認為|希望|感谢|感謝|谢谢|謝謝|听|聽"
        "|支持|拒绝|拒絕|承诺"
        "|承諾|回答|回应|回應|相信|理解|期待|想知道|高兴|高興|激动|激動|感动|感動|欣赏|欣賞"
        "|愿意|願意|帮|幫|陪|替|应该|應該"
        "|必须|必須|要求|推荐|推薦|逗|笑|担心|擔心|负责|負責|不肯|不能|打算|准备|準備|将(?!军)"
        "|將(?!軍)|就会|会去|要去|照|玩笑|叹|嘆|警告|坚持"
        "|堅持|说服|說服|怀疑|懷疑|批评|批評|道歉|松了口气|知道|得知|震惊|震驚|吃惊|吃驚"
        "|难以置信|不敢相信|心疼|同情|气愤|氣憤|惋惜|可惜|好笑|感兴趣|感興趣"
    ),
    together=re.compile(
        "聊|谈|談|讨论|討論|商量|约|約|见面|見面|分享|回忆|回憶|一起|交流|计划|計劃|打算|决定"
        "|決定|互相|彼此|同意|各自|争|爭|都"
    ),
    theirs=re.compile("(?:他|她)[们們]的"),
    addressed=re.compile(
        r"^\W*(?:先|去(?![了过過])|试试|試試|别|別|不要|不如|让|讓|可以|建议|建議)"
        r"|\?|请|請|你|您|吗|嗎"
    ),
    named=re.escape,
    matters=_matters,
    least=(3, 5, 5),
)
