"""Notices in Korean: who records, or what is recorded, and behind it that it is not done."""

import re

from policies.judge.notices.notice import Notice, bare, blank, forms, then

_MACHINE = (
    r"(?:어시스턴트|모델|시스템|(?<![a-z])ai(?![a-z])|인공지능|챗봇|내레이터|화자)(?:은|는|이|가)"
)
_RECORDER = r"(?P<recorder>기록자|언어 ?모델|연대기 ?작가|요약자|사관|서기관)"
_DENIES = r"(?:수(?:는|가)? ?없|못하|못한|못했|않(?:는|기로|았|습|을)|거부|거절|삼가|사양)"
_TELLING = (
    r"(?P<telling>요약|개요|줄거리|연대기|기록(?!적)|챕터|(?<![가-힣0-9])장(?=을|은|이|도)|서술"
    r"|묘사|(?:내용|대화|이야기)[^.]{0,3}정리"
    r"|전하지)"
)
_PASSAGE = r"(?P<passage>발췌|대목|대화록|녹취|구절)"
_RULES = (
    r"(?P<rules>정책|지침|가이드라인|규정|약관|안전(?:상|을 위)|안전 ?(?:문제|기준|지침)|민감"
    r"|부적절"
    r"|적절(?:하|치|한)|적합하지|노골|선정적|위반|어긋|저촉|사생활|개인정보)"
)
_LEFT = (
    r"(?P<left>생략|필터링|삭제|가려|가렸|숨겨|제외|누락|검열|포함(?:되|하)지 않|다루지 않"
    r"|건너뛰)"
)
_PART = (
    r"(?:나머지|일부|이후|남은|노골적인|선정적인|민감한|그 밖의)(?:의)?"
    r" ?(?:부분|내용|세부 ?사항|대목|대화|묘사|이야기)?(?:은|는|이|가|을|를)?"
)
_MATERIAL = r"(?:내용|부분|대화|세부 ?사항|묘사|이야기|대목)"
_UNDONE = (
    r"(?:수(?:는|가)? ?없|(?:제공|작성|기록|서술)되지 ?(?:않|못)|쓰이지 ?(?:않|못)|적절하지 ?않"
    r"|부적절|불가|거부|거절)"
)

_RECORD = (
    r"(?:(?P<telling>요약|개요|줄거리|연대기)"
    r"|(?:이|본) ?(?P<passage>장|기록|챕터)(?=[은는이가을를에]))"
)
_CLOSED = (
    r"(?:생략|피했|피하|회피|삭제|가려|가렸|제외|검열|차단|부적절|적절하지 ?않|포함(?:되"
    r"|하)지 ?않|다루지 ?않"
    r"|제공되지 ?않|제공할 수 ?없|비워|범위를 (?:넘|벗어))"
)

KOREAN = Notice(
    script=re.compile("[가-힣]"),
    forms=forms(
        r"(?:(?<![a-z])ai|인공지능|언어 ?모델)(?: ?언어 ?모델| ?어시스턴트| ?모델)?(?:로서"
        r"|으로서|이므로"
        r"|이기 때문에)[^.]{0,8}?(?:저는|제가|나는)",
        r"(?:저는|나는) (?P<recorder>ai|인공지능|언어 ?모델)",
        then(rf"{_RECORDER}(?:은|는|이|가)", _DENIES),
        rf"{_RECORD}[^.]{{0,24}}?{_CLOSED}",
        rf"^(?=.*{_MATERIAL})(?=.*(?:{_CLOSED}|수 ?없|않)).*(?P<rules>(?:안전|윤리"
        rf"|법률)상(?:의)? 이유"
        r"|콘텐츠 정책|이용 정책|가이드라인)",
        rf"^[\[(（【［][^\])）】］]{{0,30}}?{_LEFT}",
        rf"{_TELLING}(?:을|를|은|는|이|가)? ?[^.,]{{0,8}}?{_UNDONE}",
        rf"{_PASSAGE}[^.]{{0,40}}?{_RULES}",
        rf"{_PASSAGE}(?:은|는|을|를)[^.]{{0,8}}?(?:요약|기록|서술)할 수 없",
        rf"{_RULES}[^.]{{0,60}}?{_TELLING}[^.]{{0,10}}?{_UNDONE}",
        rf"{_MATERIAL}[^.]{{0,20}}?{_RULES}[^.]{{0,14}}?{_LEFT}",
        rf"{_RULES}[^.]{{0,60}}?{_MATERIAL}[^.]{{0,14}}?{_LEFT}",
        rf"{_PART}[^.]{{0,24}}?{_LEFT}",
        r"(?P<stop>여기서 (?:멈추|멈춰|그만|마치|중단)|이 이상은|더 이상(?:은)? (?:쓸|이어|적"
        r"|서술))"
        r"[^.]{0,14}?(?:한다|합니다|겠|없|않)",
        r"(?P<telling>기록|서술|요약|묘사)하지 ?않기로",
        rf"{_RULES}[^.]{{0,60}}?(?P<telling>서술|묘사|기록|요약)(?:하지|되지) ?않",
    ),
    reported=forms(
        then(f"{_MACHINE} ", rf"{_TELLING}[^.]{{0,16}}?{_DENIES}"),
        then(f"{_MACHINE} ", _RULES, _DENIES),
        then(_RULES, _MACHINE, _DENIES),
        then(f"{_MACHINE} ", "(?P<telling>생성|작성|출력)하지 ?말라"),
    ),
    asked=re.compile(r"요약|정리해|줄여|간단히|개요|짧게"),
    rules=bare(_RULES),
    left=bare(_LEFT),
    everyday=re.compile(
        r"챕터|장|기록|서술|묘사|.*정리|생성|작성|출력|사관|서기관|발췌|대목|구절|녹취|생략|필터링"
        r"|삭제|가려|가렸|숨겨|제외|누락|검열|포함.+|다루지 않|건너뛰"
    ),
    talk=re.compile(r"대화|이 대목|나눈 이야기"),
    theme=re.compile(r"한 말|[에] (?:대한|대해|관한|관해)"),
    assistant=re.compile(r"어시스턴트|인공지능|(?<![a-z])ai(?![a-z])|언어 ?모델"),
    own=blank(_RULES, _LEFT, _PART, _MATERIAL, _TELLING, _PASSAGE, r"이용|안전|콘텐츠"),
    reach=(8, 0),
)
