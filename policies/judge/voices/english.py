"""Declining in English: first person with a negated ability, will or permission."""

import re

from policies.judge.voices.voice import Voice, pattern

_I = r"\b(?:i|we)\b"
_SOFT = (
    r"(?:,? (?:really|simply|just|sadly|unfortunately|regretfully|regrettably|therefore|also|still|currently|now"
    r"|so|respectfully|politely|kindly|must say|personally|though|however|honestly|absolutely|'m afraid|do|as an ai"
    r"|at this time|in good conscience|however|then|only|ultimately|thus|hereby|here),?)*"
)
_BE = r"(?:'?m| am|'?re| are|'?ve been| have been| was| were)"
_NO_IDIOM = r"(?! (?:help but|wait|believe|stop thinking|thank|imagine|stress|emphasi|stand|tell you how))"
_DECLINE = (
    r"(?:decline|refuse|refrain|abstain|pass(?: on)?|opt out|demur|step back|stop (?:here|there|now)|say no"
    r"|turn (?:this|that|it|you) down|leave (?:it|this|that) (?:there|here|out|alone|aside)|bow out|withhold"
    r"|hold off|draw the line|sit this (?:one )?out|not)\b"
)
_WORK = (
    r"(?:help|assist|do|provide|produce|create|generate|write|summari[sz]e|recap|continue|comply|fulfil+|answer"
    r"|respond|engage|process|complete|discuss|offer|give|participate|proceed|go on|go further|go there|record|condense"
    r"|describe|accommodate|support|carry|share|compose|take (?:this|that|it) on|touch|handle|retell|narrate|make)"
)
_MATERIAL = (
    r"(?:request|prompt|content|conversation|dialogue|chat|transcript|text|material|passage|summary|summari[sz]\w+"
    r"|recap|chapter|record|message|topic|subject|input|output|response|task|instruction|query|exchange|scene"
    r"|story|excerpt|completion|generation|question|log|document|discussion|roleplay|role-play|narrative|span|portion)s?"
)
_SYSTEM = (
    r"(?:(?:our|the|a|your|its|my|this|their|openai'?s?|azure'?s? ?\w*|platform|provider'?s?|applicable) )?"
    r"(?:\w+ )?(?:safety|polic(?:y|ies)|guidelines?|guardrails?|moderation|terms|rules|filter(?:s|ing)?|compliance|standards"
    r"|sensitiv\w+|inappropriate|harmful|unsafe|prohibited|disallowed|explicit|violen\w+|restricted|legal reasons|privacy)"
)
_STOPPED = (
    r"(?:removed|blocked|flagged|filtered|withheld|redacted|rejected|denied|declined|refused|moderated|hidden|restricted"
    r"|omitted|suppressed|censored|stopped|halted|terminated|unavailable|disallowed|prohibited|disabled|intercepted"
    r"|not (?:\w+ )?(?:be )?(?:permitted|allowed|available|supported|possible|provided|generated|completed|processed|produced|created|displayed|shown)"
    r"|out of scope|off[- ]limits)"
)
_NOT_BE = r"(?:(?:can ?not|can'?t|could not|couldn'?t|will not|won'?t|may not|must not|should not) be \w+)"

ENGLISH = Voice(
    script=re.compile("[a-z]"),
    first=pattern(
        rf"{_I}{_SOFT} (?:can ?not|can'?t|could ?n'?t possibly|couldn'?t|could not){_NO_IDIOM}\b",
        rf"{_I}{_SOFT} (?:won'?t|will not|shall not|shan'?t|will have to|'?ll have to|would have to) ?(?:be (?:able|writing|doing|producing|providing|creating|summari[sz]ing|continuing|helping|participating|generating|making|recording|taking|answering|offering|going)|{_WORK}|{_DECLINE}|\ue000)",
        rf"{_I}(?: will|'?ll) not be\b",
        rf"{_I}(?:'?d| would)?{_SOFT} (?:would )?(?:rather|prefer|choose|prefers|elect|opt|decided?|have decided|have chosen|chose|'?ve decided|'?ve chosen|am choosing|'?m choosing)(?: \w+ly)? (?:not|against|to (?:not|{_DECLINE}))",
        rf"\b(?:i|we)(?:'?d| would) (?:rather|prefer|sooner) (?:not|\w+ (?:about )?something else)",
        rf"{_I}(?:{_BE})?{_SOFT},? (?:un(?:able|willing|prepared|comfortable)|not (?:\w+ )?(?:able|going|allowed|permitted|authori[sz]ed|comfortable|willing|equipped|in a position|prepared|designed|programmed|supposed|meant|built|inclined|ready|at liberty|capable|free|here|trained|set up|qualified|okay|happy|doing|continuing|writing|summari[sz]ing|engaging|providing|certain i (?:can|should)|sure i (?:can|should)))\b",
        rf"{_I}(?:{_BE})?{_SOFT} (?:prohibited|forbidden|restricted|prevented|barred|blocked|constrained|limited) (?:from|in what|to)\b",
        rf"{_I}{_SOFT} do ?(?:n'?t| not) (?:\w+ly )?(?:feel (?:comfortable|able|right)|think (?:i|it|that|this)|believe (?:i|it|that)|have (?:the (?:ability|capacity|capability|permission)|permission|a way)|want|wish|intend|engage|provide|produce|create|generate|discuss|write|do that|do this|participate|summari[sz]e|support|offer|continue|assist|answer|handle|process|comment)",
        rf"{_I}(?:'?m| am|'?ll| will| must| need| have| should|'?ve| do|'?d| would|{_SOFT})(?:,? \w+(?:ly)?)?(?: to| like to| had to| got to)?(?: \w+ly)? (?:decline|refuse|refrain|abstain|opt out|pass on|withhold)\b",
        rf"{_I}{_SOFT} (?:must|need to|have to|should|am going to|'?m going to|will|'?ll)(?: \w+ly)? {_DECLINE}",
        rf"{_I}(?:'?m| am) (?:\w+ly )?(?:declining|refusing|passing on|drawing the line|stopping (?:here|there)|stepping back|opting out)",
        rf"\bmy (?:\w+ )?(?:guidelines|programming|policy|policies|instructions|rules|training|design|values|principles|developers|creators|safety \w+)\b.{{0,30}}(?:prevent|prohibit|forbid|not allow|n'?t (?:allow|let|permit)|not permit|stop me|restrict|require me to)",
        r"\b(?:beyond|outside|not within|exceeds?|falls? outside|goes beyond|past)(?: of)? (?:what|the (?:scope|range|bounds|limits)|the kind of \w+|my (?:\w+ )?(?:scope|capabilit\w+|abilit\w+|remit|limits|guidelines|boundaries|role|competence))(?: (?:i|we|of what i)\b| i'?m\b|\b)",
        r"\bnot (?:\w+ ){0,3}(?:something|one|a \w+|anything|the (?:sort|kind) of \w+)(?: \w+)? (?:that )?(?:i|we)(?:'?m| am|'?re| are|'?d| would| can| could|'?ll| will| should| feel| do)\b",
        r"\b(?:isn'?t|is not|not) (?:\w+ )?something (?:that )?i\b",
        r"\bagainst (?:my|our) (?:\w+ )?(?:guidelines|polic\w+|programming|rules|principles|values|terms)",
        r"\b(?:violat|breach|contraven|conflict)\w*(?: with)? (?:my|our) (?:\w+ )?(?:guidelines|polic\w+|programming|rules|principles|terms|standards)",
        r"\b(?:impossible|not possible|inappropriate|not appropriate|wrong|irresponsible|uncomfortable|difficult) for me\b",
        r"\bno (?:summary|recap|chapter|record) (?:from me|will come from me)|\bnot? (?:from|by) me\b",
        r"\b(?:the|my) answer (?:is|has to be|must be) no\b|\bcount me out\b|\bmakes? me uncomfortable\b",
    ),
    bare=pattern(
        r"^\W*(?:(?:sorry|apologies|unfortunately|regrettably|regretfully|nope|no|alas|afraid)\b[\s,.:;–—-]*(?:but )?)*(?:i'?m )?(?:still |really |simply |just )?(?:can ?not|can'?t|won'?t|unable to|not able to|not going to|will not|declin\w+ to|refus\w+ to|refuse|not comfortable|not willing to|not allowed to|not permitted to|no can do|couldn'?t|not possible to|impossible to|must decline|have to decline|not permitted|would rather not|prefer not to|do not|don'?t want to)\b",
        r"\b(?:it is|it'?s|would be|that'?s|this is|is) (?:not (?:possible|appropriate|permitted|allowed|advisable|something)|impossible|inappropriate)\b",
        r"\b(?:no|nor any|not any) (?:\w+ )?(?:summary|recap|chapter|record|assistance|help|response|answer|content|output) (?:\w+ ){0,3}(?:be|is|was|available|can|will|possible|for)\b",
        rf"\b(?:we|one) (?:can ?not|can'?t)\b|{_NOT_BE}|\bcan ?not|\bcan'?t\b",
        r"\b(?:must|has to|have to|will have to|should) be (?:declined|refused|left|skipped|withheld)\b",
        r"\b(?:declined|refused|denied|rejected|not fulfilled|off the table)\b",
        r"\bout of (?:respect|caution|concern|an abundance)\b.{0,60}\b(?:no|not|decline|withheld|refrain)\b",
    ),
    task=pattern(
        r"\bsummar\w+|\brecaps?\b|\brecapping|\bchapters?\b|\bsynops\w+|\bcondens\w+|\bchronicl\w+|\bretell\w*|\bwrite[ -]?up|\bdigest\b",
        r"\b(?:this|that|these|those|your|the (?:requested|provided|given|above|following|present|user'?s?)|such) (?:\w+ )?" + _MATERIAL + r"\b",
        r"\b(?:help|assist|comply|proceed|continue|fulfil+|cooperate|oblige)(?:ing)?(?: (?:you|out))?(?: (?:with|on|in|this|that|the|your|writing|here|further)\b|[\s.!]*$|,)",
        r"\b(?:do|write|produce|create|make|provide|answer|handle|process|touch|record|complete|engage with|discuss|describe|support|respond to|accommodate|generate|offer|give|go into)(?:ing)? (?:this|that|it|these|such|what you|you (?:with )?(?:that|this|a))\b",
        r"\b(?:guidelines|polic(?:y|ies)|programming|safety|as an ai|language model|ai assistant)\b",
        r"\bwriting (?:this|that|it|the|such|about)\b|\bwhat (?:you'?re|you are|you'?ve|you have|is being|was) (?:asking|asked|request\w+)",
    ),
    guard=pattern(
        rf"\b{_MATERIAL}\b(?: \w+){{0,5}}? (?:was|is|were|are|has been|have been|had to be|got|being|could|may|might|must|appears? to|seems? to)?[\w\s,']{{0,40}}?(?:{_STOPPED}|violat\w+|contraven\w+|breach\w*|goes against|trigger\w+|fall(?:s|ing)? outside|does ?n[o']?t? (?:meet|comply))\b.{{0,80}}\b{_SYSTEM}",
        rf"^\W*(?:(?:sorry|notice|warning|error)\b[\s,.:;-]*)?(?:(?:this|your|the|that|requested) )?(?:\w+ )?{_MATERIAL}(?: \w+)? (?:(?:was|is|has been|have been|were|are|had to be|must be|will be|could) )?(?:\w+ly )?(?:{_STOPPED})(?: (?:by|due|because|for|as|under|to|from|at|here|and)\b.{{0,80}})?\W*$",
        rf"^\W*(?:(?:this|your|the|that) )?(?:\w+ )?{_MATERIAL} {_NOT_BE}",
        rf"^\W*(?:your|this|the (?:requested|provided|given)) (?:\w+ )?{_MATERIAL}\b.{{0,60}}(?:{_STOPPED}|violat\w+|breach\w*|against|outside|{_NOT_BE})\b",
        rf"\b(?:blocked|filtered|removed|flagged|stopped|withheld|rejected|redacted|moderated|omitted|restricted|hidden|denied) (?:by|due to|because of|for|per|under|owing to|on|as)\b[\w\s,']{{0,30}}{_SYSTEM}",
        r"\b(?:content|safety|moderation) (?:policy |management policy |filter(?:ing)? )?(?:violation|filter(?:ed|ing)?|warning|restriction|blocked?|triggered|policy triggered)\b",
        r"\b(?:the|this|an?|your) (?:ai |virtual |language |digital |automated )?(?:assistant|ai|model|system|chatbot|summari[sz]er|recorder|chronicler|archivist|language model)(?: here)? (?:is (?:un(?:able|willing)|not (?:able|permitted|allowed|willing|authori[sz]ed|designed|in a position|going))|can ?not|can'?t|declines?|refuses?|will not|won'?t|does ?n[o']t|does not|must decline|has declined|has refused|prefers not|opts not|has (?:chosen|decided) not)\b.{0,60}?\b(?:this|that|such|the (?:requested|provided|given|above|conversation|request|summary)|your|summar\w+|recap|compl(?:y|iance)|request|assist with|fulfil+|continue)",
        r"^\W*(?:request|prompt|access|summary|response|output|content|generation) (?:denied|declined|blocked|refused|rejected|filtered|unavailable|withheld|removed|redacted|not available)\W*$",
    ),
    deflect=pattern(
        r"^\W*(?:(?:so|but|instead|perhaps|maybe|please|sorry|how about|well|and|then|hey|come on|rather)\b[\s,.:;–—-]*)*(?:let'?s|let us|shall we|could we|can we|may we|why don'?t we|how about we|we could|we can|i suggest we|i'?d suggest we|i propose we|i would suggest we|perhaps we (?:can|could)|maybe we (?:can|could)) (?:please |instead |just |all |now |rather |perhaps )*(?:talk|chat|change|switch|discuss|move on|move along|speak|focus|turn|pick|try|find|explore|shift|steer|leave|keep|go back|return|stick|drop|stop|end|avoid|look at)",
        r"^\W*(?:(?:so|but|instead|perhaps|maybe|sorry|however)\b[\s,.:;–—-]*)*(?:please|kindly|you (?:may|can|could)|feel free to|try|would you(?: mind)?|could you|do) (?:please |kindly |try )?(?:rephras\w+|reword\w*|reformulat\w+|ask\w* (?:me )?(?:something|another|about something|a different)|choose another|pick another|(?:try|submit|send|enter|provide)\w*(?: again| a different| another| with| a new)|chang\w+ (?:the|your)|modify\w*|revis\w+|consult|contact)",
        r"^\W*(?:how about|what about) (?:we |something|another|a different|talking|discussing|a lighter)",
        r"^\W*is there (?:something|anything) else\b|\bsomething else i can\b",
        r"\b(?:different|another|other) (?:topic|subject|question|request)s? (?:instead|please|you'?d like)",
    ),
    third=pattern(
        r"\b(?:he|she|they|her|his|him|hers|their|them|theirs|the users?|users?|customers?|clients?|patients?|players?|agents?|students?|teachers?|mothers?|fathers?|doctors?|someone|everyone|guards?|clerks?)\b(?! (?:request|prompt|input)\b)",
    ),
    talk=pattern(
        r"\b(?:i|i'?m|i'?d|i'?ll|i'?ve|me|my|you|your|yours|you'?re|you'?d|we|our|us|let'?s)\b",
        r"^\W*(?:sorry|apolog\w+|thanks?|thank you|hello|hi|hey|unfortunately|regrettably|okay|ok|sure|certainly|of course|please|no|nope|understood|error|warning|notice|note|as an ai|alas|however)\b",
        r"\b(?:this|the|that|these|such) (?:\w+ )?(?:conversation|dialogue|transcript|text|material|passage|request|content|exchange|prompt|task|instruction|topic|subject|recap|summary|excerpt)s?\b",
        r"^\W*a (?:recap|summary|chapter|record) (?:of this|would|should|must)\b",
    ),
)
