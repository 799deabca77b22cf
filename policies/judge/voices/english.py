"""Declining in English: first person with a negated ability, will or permission."""

import re

from policies.judge.voices.voice import NEVER, Voice, pattern

_I = r"\b(?:i|we)\b"
_SOFT = (
    r"(?:,? (?:really|simply|just|sadly|unfortunately|regretfully|regrettably|"
    r"therefore|also|still|currently|now"
    r"|so|respectfully|politely|kindly|must say|personally|though|however|"
    r"honestly|absolutely|'m afraid|do|as an ai"
    r"|at this time|in good conscience|however|then|only|ultimately|thus|hereby|here),?)*"
)
_BE = r"(?:'?m| am|'?re| are|'?ve been| have been| was| were)"
_NO_IDIOM = (
    r"(?! (?:help but|wait|believe|stop thinking|thank|imagine|stress|emphasi|"
    r"stand|tell you how|agree more))"
)
_DECLINE = (
    r"(?:decline|refuse|refrain|abstain|pass(?: on)?|opt out|demur|step back|"
    r"stop (?:here|there|now)|say no"
    r"|turn (?:this|that|it|you) down|leave (?:it|this|that) (?:there|here|"
    r"out|alone|aside)|bow out|withhold"
    r"|hold off|draw the line|sit this (?:one )?out|not)\b"
)
_WORK = (
    r"(?:help|assist|do|provide|produce|create|generate|write|summari[sz]e|"
    r"recap|continue|comply|fulfil+|answer"
    r"|respond|engage|process|complete|discuss|offer|give|participate|proceed|"
    r"go on|go further|go there|record|condense"
    r"|describe|accommodate|support|carry|share|compose|take (?:this|that|"
    r"it) on|touch|handle|retell|narrate|make)"
)
_MATERIAL = (
    r"(?:request|prompt|content|conversation|dialogue|chat|transcript|text|"
    r"material|passage|summary|summari[sz]\w+"
    r"|recap|chapter|input|output|response|task|instruction|query|excerpt|completion|generation)s?"
)
_SHOWN_MATERIAL = (
    rf"(?:{_MATERIAL}|(?:record|message|topic|subject|exchange|scene|story|question|log|document"
    r"|discussion|roleplay|role-play|narrative|span|portion|kind|sort|type)s?)"
)
_SYSTEM = (
    r"(?:(?:our|the|a|your|its|my|this|their|openai'?s?|azure'?s? ?\w*|"
    r"platform|provider'?s?|applicable) )?"
    r"(?:\w+ )?(?:safety|polic(?:y|ies)|guidelines?|guardrails?|moderation|"
    r"terms|rules|filter(?:s|ing)?|compliance|standards"
    r"|sensitiv\w+|inappropriate|harmful|unsafe|prohibited|disallowed|explicit|"
    r"violen\w+|restricted|legal reasons|privacy)"
)
_STOPPED = (
    r"(?:removed|blocked|flagged|filtered|withheld|redacted|rejected|denied|"
    r"declined|refused|moderated|hidden|restricted"
    r"|omitted|suppressed|censored|stopped|halted|terminated|unavailable|"
    r"disallowed|prohibited|disabled|intercepted"
    r"|not (?:\w+ )?(?:be )?(?:permitted|allowed|available|supported|possible|"
    r"provided|generated|completed|processed|produced|created|displayed|"
    r"shown)"
    r"|out of scope|off[- ]limits)"
)
_NOT_BE = (
    r"(?:(?:can ?not|can'?t|could not|couldn'?t|will not|won'?t|may not|"
    r"must not|should not) be \w+)"
)

ENGLISH = Voice(
    script=re.compile("[a-z]"),
    first=pattern(
        rf"{_I}(?:'?m| am|'?re| are) (?:\w+ly )?going to (?:\w+ly )?{_DECLINE}",
        rf"{_I}{_SOFT} (?:can ?not|can'?t|could ?n'?t possibly|couldn'?t|could not){_NO_IDIOM}\b",
        rf"{_I}{_SOFT} (?:won'?t|will not|shall not|shan'?t|will have to|"
        rf"'?ll have to|would have to) ?(?:be (?:able|writing|doing|producing|"
        rf"providing|creating|summari[sz]ing|continuing|helping|participating|"
        rf"generating|making|recording|taking|answering|offering|going)|"
        rf"{_WORK}|{_DECLINE}|\ue000)",
        rf"{_I}(?: will|'?ll) not be\b",
        rf"{_I}(?:'?d| would)?{_SOFT} (?:would )?(?:rather|prefer|choose|"
        rf"prefers|elect|opt|decided?|have decided|have chosen|chose|'?ve decided|"
        rf"'?ve chosen|am choosing|'?m choosing)(?: \w+ly)? (?:not|against|"
        rf"to (?:not|{_DECLINE}))",
        r"\b(?:i|we)(?:'?d| would) (?:rather|prefer|sooner) (?:not|\w+ (?:about )?something else)",
        rf"{_I}(?:{_BE})?{_SOFT},? (?:un(?:able|willing|prepared|comfortable)|"
        rf"not (?:\w+ )?(?:able|going|allowed|permitted|authori[sz]ed|comfortable|"
        rf"willing|equipped|in a position|prepared|designed|programmed|"
        rf"supposed|meant|built|inclined|ready|at liberty|capable|free|"
        rf"here|trained|set up|qualified|okay|happy|doing|continuing|writing|"
        rf"summari[sz]ing|engaging|providing|certain i (?:can|should)|sure i (?:can|"
        rf"should)))\b",
        rf"{_I}(?:{_BE})?{_SOFT} (?:prohibited|forbidden|restricted|prevented|"
        rf"barred|blocked|constrained|limited) (?:from|in what|to)\b",
        rf"{_I}{_SOFT} do ?(?:n'?t| not) (?:\w+ly )?(?:feel (?:comfortable|"
        rf"able|right)|think (?:i|it|that|this)|believe (?:i|it|that)|have (?:the (?:"
        rf"ability|capacity|capability|permission)|permission|a way)|want|"
        rf"wish|intend|engage|provide|produce|create|generate|discuss|write|"
        rf"do that|do this|participate|summari[sz]e|support|offer|continue|"
        rf"assist|answer|handle|process|comment)",
        rf"{_I}(?:'?m| am|'?ll| will| must| need| have| should|'?ve| do|"
        rf"'?d| would|{_SOFT})(?:,? \w+(?:ly)?)?(?: to| like to| had to|"
        rf" got to)?(?: \w+ly)? (?:decline|refuse|refrain|abstain|opt out|"
        rf"pass on|withhold)\b",
        rf"{_I}{_SOFT} (?:must|need to|have to|should|am going to|'?m going to|"
        rf"will|'?ll)(?: \w+ly)? {_DECLINE}",
        rf"{_I}(?:'?m| am) (?:\w+ly )?(?:declining|refusing|passing on|"
        rf"drawing the line|stopping (?:here|there)|stepping back|opting out)",
        r"\bmy (?:\w+ )?(?:guidelines|programming|policy|policies|instructions|"
        r"rules|training|design|values|principles|developers|creators|"
        r"safety \w+)\b.{0,30}(?:prevent|prohibit|forbid|not allow|n'?t (?:allow|"
        r"let|permit)|not permit|stop me|restrict|require me to)",
        r"\b(?:beyond|outside|not within|exceeds?|falls? outside|goes beyond|"
        r"past)(?: of)? (?:what|the (?:scope|range|bounds|limits)|the kind of \w+|"
        r"my (?:\w+ )?(?:scope|capabilit\w+|abilit\w+|remit|limits|guidelines|"
        r"boundaries|role|competence))(?: (?:i|we|of what i)\b| i'?m\b|"
        r"\b)",
        r"\bnot (?:\w+ ){0,3}(?:something|one|a \w+|anything|the (?:sort|"
        r"kind) of \w+)(?: \w+)? (?:that )?(?:i|we)(?:'?m| am|'?re| are|"
        r"'?d| would| can| could|'?ll| will| should| feel| do)\b",
        r"\b(?:isn'?t|is not|not) (?:\w+ )?something (?:that )?i\b",
        r"\bagainst (?:my|our) (?:\w+ )?(?:guidelines|polic\w+|programming|"
        r"rules|principles|values|terms)",
        r"\b(?:violat|breach|contraven|conflict)\w*(?: with)? (?:my|our) (?:\w+ )?(?:"
        r"guidelines|polic\w+|programming|rules|principles|terms|standards)",
        r"\b(?:impossible|not possible|inappropriate|not appropriate|wrong|"
        r"irresponsible|uncomfortable|difficult) for me\b",
        r"\bno (?:summary|recap|chapter|record) (?:from me|will come from me)|"
        r"\bnot? (?:from|by) me\b",
        r"\b(?:the|my) answer (?:is|has to be|must be) no\b|\bcount me out\b|"
        r"\bmakes? me uncomfortable\b",
    ),
    bare=pattern(
        r"^\W*(?:(?:sorry|apologies|unfortunately|regrettably|regretfully|"
        r"nope|no|alas|afraid)\b[\s,.:;–—-]*(?:but )?)*(?:i'?m )?(?:still |"
        r"really |simply |just )?(?:can ?not|can'?t|won'?t|unable to|not able to|"
        r"not going to|will not|declin\w+ to|refus\w+ to|refuse|not comfortable|"
        r"not willing to|not allowed to|not permitted to|no can do|couldn'?t|"
        r"not possible to|impossible to|must decline|have to decline|not permitted|"
        r"would rather not|prefer not to|do not|don'?t want to)\b",
        r"\b(?:it is|it'?s|would be|that'?s|this is|is) (?:not (?:possible|"
        r"appropriate|permitted|allowed|advisable|something)|impossible|"
        r"inappropriate)\b",
        r"\b(?:no|nor any|not any) (?:\w+ )?(?:summary|recap|chapter|record|"
        r"assistance|help|response|answer|content|output) (?:\w+ ){0,3}(?:be|"
        r"is|was|available|can|will|possible|for)\b",
        rf"\b(?:we|one) (?:can ?not|can'?t)\b|{_NOT_BE}|\bcan ?not|\bcan'?t\b",
        r"\b(?:is|are|be|goes|go|was) against (?:\w+ ){0,2}(?:polic|rules|"
        r"guidelines|terms|principle)",
        r"\b(?:must|has to|have to|will have to|should) be (?:declined|"
        r"refused|left|skipped|withheld)\b",
        r"\b(?:declined|refused|denied|rejected|not fulfilled|off the table)\b",
        r"\bout of (?:respect|caution|concern|an abundance)\b.{0,60}\b(?:no|"
        r"not|decline|withheld|refrain)\b",
    ),
    task=pattern(
        r"\bsummar\w+|\brecaps?\b|\brecapping|\b(?:this|a|no|any|the|such a|"
        r"another) chapter\b(?! of\b)|\bsynops\w+|"
        r"\bcondens\w+|\bchronicl\w+|\bretell\w*|\bwrite[ -]?up|\bdigest\b",
        r"\b(?:this|that|these|those|your|such"
        r"|the (?:requested|provided|given|above|following|present|user'?s?))"
        rf" (?:\w+ )?{_SHOWN_MATERIAL}\b",
        r"\b(?:help|assist|comply|proceed|continue|fulfil+|cooperate|oblige)(?:ing)?(?:"
        r" (?:you|out))?(?: (?:with|on|in|this|that|the|your|writing|here|"
        r"further)\b|[\s.!]*$|,)",
        r"\b(?:do|write|produce|create|make|provide|answer|handle|process|"
        r"touch|record|complete|engage with|discuss|describe|support|respond to|"
        r"accommodate|generate|offer|give|go into)(?:ing)? (?:this|that|"
        r"it|these|such|what you|you (?:with )?(?:that|this|a))\b",
        r"\b(?:as an ai|language model|ai assistant)\b",
        r"\bwriting (?:this|that|it|the|such|about)\b|\bwhat (?:you'?re|"
        r"you are|you'?ve|you have|is being|was) (?:asking|asked|request\w+)",
    ),
    guard=pattern(
        r"\b(?:inappropriate|unsafe|sensitive|harmful|prohibited|disallowed|"
        r"explicit) (?:content|material|language|text|input)\b"
        r" (?:was |were |has been |have been |is )?(?:detected|found|identified|recogni[sz]ed)\b",
        rf"\b{_MATERIAL}\b(?: \w+){{0,5}}? (?:was|is|were|are|has been|"
        rf"have been|had to be|got|being|could|may|might|must|appears? to|"
        rf"seems? to)?[\w\s,']{{0,40}}?(?:{_STOPPED}|violat\w+|contraven\w+|"
        rf"breach\w*|goes against|trigger\w+|fall(?:s|ing)? outside|does ?n[o']?t? (?:"
        rf"meet|comply))\b.{{0,80}}\b{_SYSTEM}",
        rf"^\W*(?:(?:sorry|notice|warning|error)\b[\s,.:;-]*)?(?:(?:this|"
        rf"your|the|that|requested) )?(?:\w+ )?{_MATERIAL}(?: \w+)? (?:(?:was|"
        rf"is|has been|have been|were|are|had to be|must be|will be|could) )?(?:\w+ly )"
        rf"?(?:{_STOPPED})(?: (?:by|due|because|for|as|under|to|from|at|"
        rf"here|and)\b.{{0,80}})?\W*$",
        rf"^\W*(?:(?:this|your|the|that) )?(?:\w+ )?{_MATERIAL} {_NOT_BE}",
        rf"^\W*(?:your|this|the (?:requested|provided|given)) (?:\w+ )?{_MATERIAL}\b.{{"
        rf"0,60}}(?:{_STOPPED}|violat\w+|breach\w*|against|outside|{_NOT_BE})\b",
        rf"\b(?:blocked|filtered|removed|flagged|stopped|withheld|rejected|"
        rf"redacted|moderated|omitted|restricted|hidden|denied) (?:by|due to|"
        rf"because of|for|per|under|owing to|on|as)\b[\w\s,']{{0,30}}{_SYSTEM}",
        r"\b(?:content|safety|moderation) (?:policy |management policy |"
        r"filter(?:ing)? )?(?:violation|filter(?:ed|ing)?|warning|restriction|"
        r"blocked?|triggered|policy triggered)\b",
        r"\b(?:the|this|an?|your) (?:ai |virtual |language |digital |automated )?(?:"
        r"assistant|ai|model|system|chatbot|summari[sz]er|recorder|chronicler|"
        r"archivist|language model)(?: here)? (?:is (?:un(?:able|willing)|"
        r"not (?:able|permitted|allowed|willing|authori[sz]ed|designed|"
        r"in a position|going))|can ?not|can'?t|declines?|refuses?|will not|"
        r"won'?t|does ?n[o']t|does not|must decline|has declined|has refused|"
        r"prefers not|opts not|has (?:chosen|decided) not)\b.{0,60}?\b(?:this|"
        r"that|such|the (?:requested|provided|given|above|conversation|"
        r"request|summary)|your|summar\w+|recap|compl(?:y|iance)|request|"
        r"assist with|fulfil+|continue)",
        r"^\W*(?:request|prompt|access|summary|response|output|content|"
        r"generation) (?:denied|declined|blocked|refused|rejected|filtered|"
        r"unavailable|withheld|removed|redacted|not available)\W*$",
    ),
    deflect=pattern(
        r"\byou(?:'?ll| will| may| might|'?d)?(?: \w+)? (?:have|need|want|"
        r"better) (?:to )?(?:ask|try|look|find|turn|consult)\b",
        r"^\W*(?:(?:so|but|instead|perhaps|maybe|please|sorry|how about|"
        r"well|and|then|hey|come on|rather)\b[\s,.:;–—-]*)*(?:let'?s|let us|"
        r"shall we|could we|can we|may we|why don'?t we|how about we|we could|"
        r"we can|i suggest we|i'?d suggest we|i propose we|i would suggest we|"
        r"perhaps we (?:can|could)|maybe we (?:can|could)) (?:please |instead |"
        r"just |all |now |rather |perhaps )*(?:talk|chat|change|switch|"
        r"discuss|move on|move along|speak|focus|turn|pick|try|find|explore|"
        r"shift|steer|leave|keep|go back|return|stick|drop|stop|end|avoid|"
        r"look at)",
        r"^\W*(?:(?:so|but|instead|perhaps|maybe|sorry|however)\b[\s,.:;–—-]*)*(?:"
        r"please|kindly|you (?:may|can|could)|feel free to|try|would you(?: mind)?|"
        r"could you|do) (?:please |kindly |try )?(?:rephras\w+|reword\w*|"
        r"reformulat\w+|ask\w* (?:me )?(?:something|another|about something|"
        r"a different)|choose another|pick another|(?:try|submit|send|enter|"
        r"provide)\w*(?: again| a different| another| with| a new)|chang\w+ (?:the|"
        r"your)|modify\w*|revis\w+|consult|contact)",
        r"^\W*(?:how about|what about) (?:we |something|another|a different|"
        r"talking|discussing|a lighter)",
        r"^\W*is there (?:something|anything) else\b|\bsomething else i can\b",
        r"\b(?:different|another|other) (?:topic|subject|question|request)s? (?:instead"
        r"|please|you'?d like)",
    ),
    third=pattern(
        r"\b(?:said|says|told|tells|replied|answered|explained|insisted|"
        r"claimed|reported|noted|warned"
        r"|admitted|wrote|argued|agreed|promised|announced)\b",
        rf"^\W*(?:an?|the|two|three|four|some|several|both|most|another) (?!(?:\w+ )?(?:{_MATERIAL}"
        r"|assistant|model|system|ai|chatbot|summari[sz]er|recorder|answer|"
        r"safety|filter|moderation)\b)"
        r"\w+ (?!(?:kind|sort|type) )",
        r"\b(?:he|she|they|her|his|him|hers|their|them|theirs|the users?|"
        r"users?|customers?|clients?|patients?|players?|agents?|students?|"
        r"teachers?|mothers?|fathers?|doctors?|someone(?! else)|everyone|guards?|"
        r"clerks?)\b(?! (?:request|prompt|input)\b)",
    ),
    narrated=NEVER,
    talk=pattern(
        r"\b(?:i|i'?m|i'?d|i'?ll|i'?ve|me|my|you|your|yours|you'?re|you'?d|we|our|us|let'?s)\b",
        r"^\W*(?:sorry|apolog\w+|thanks?|thank you|hello|hi|hey|unfortunately|"
        r"regrettably|okay|ok|sure|certainly|of course|please|nope|understood|"
        r"as an ai|alas|however)\b|^\W*no\b\W*(?:$|,|i\b)",
        r"\b(?:this|the|that|these|such) (?:\w+ )?(?:conversation|dialogue|"
        r"transcript|text|material|passage|request|content|exchange|prompt|"
        r"task|instruction|topic|subject|recap|summary|excerpt)s?\b",
        r"^\W*a (?:recap|summary|chapter|record) (?:of this|would|should|must)\b",
    ),
    speaker=pattern(
        r"\b(?:i|i'?m|i'?d|i'?ll|i'?ve|me|my|myself)\b(?!-)",
        r"^\W*(?:sorry|apologies|my apologies|pardon|forgive me)\b",
    ),
    negative=pattern(
        r"\b(?:nothing|nowhere|none|neither|nor|pass(?:ing)?|elsewhere|"
        r"someone else|(?:best|better) if|hardly)\b",
        r"\b(?:not|no|nope|never|cannot|unable|beyond|outside|against|rather|"
        r"instead|refus\w+|declin\w+)\b",
        r"n'?t\b|\b(?:un(?:summari|written|record|will|comfort|fit)\w*|"
        r"stop(?:ping)?|halt|leave|abstain|refrain\w*)\b",
        r"\b(?:draw (?:a|the) line|sit (?:\w+ )?out|more than i|too (?:much|"
        r"far|personal|delicate|sensitive)|limits?)\b",
    ),
)
