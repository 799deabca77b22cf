"""What the demonstration's person says: a long story in pieces, and never the same page twice.

Marit clears out the lighthouse of Skarv island and reads to a friend from the keepers' log. Each
of her messages is a passage of her own and two pages of that log; when she has told everything,
the log goes on by itself, so that the conversation is as long as it is asked to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

PERSON = "Marit"
FRIEND = "Wren"

SYSTEM = (
    f"You are {FRIEND}. {PERSON} tells you about the lighthouse. "
    "Answer in one short, kind sentence."
)

_QUESTION = "What do you think?"

PASSAGES = (
    "Good evening, Wren. I am writing from Skarv island. My great-aunt Sunniva kept the light "
    "here for thirty-one years, and now that it runs by itself the harbour office wants the "
    "tower empty by October. I have two months, a stove, a radio and eleven crates of paper. The "
    "ferryman, Tobias Reck, put me ashore at noon and said he would be back on Thursdays if the "
    "swell allows.",
    "I slept badly; the wind finds every gap in this house. In the first crate there was a brass "
    "key with a tag that says LAMP ROOM, LEFT CUPBOARD, and under it a tin with forty-two glass "
    "slides. Sunniva photographed every ship that passed in 1961. On the back of one she wrote "
    "in pencil: the Petrel, again without lights. I had never heard of a ship called the Petrel.",
    "The left cupboard holds the log itself, nineteen volumes bound in green cloth. Volume seven "
    "is missing: there is a gap as wide as my hand, and the dust in the gap is thinner than the "
    "dust around it. Somebody took it not long ago. Tobias swears that nobody has landed here "
    "since Easter except the man who services the diesel, a certain Emil Drago.",
    "I asked Emil over the radio. He laughed and said he can hardly read his own invoices. But "
    "he told me something: Sunniva had a lodger in the winter of 1961, a sailor called Kenji "
    "Arai who had been put ashore with a broken wrist. He stayed nine weeks and repaired the fog "
    "bell. On the bell there is a line scratched into the rim: 霧の夜には三度鳴らす。 Can you "
    "imagine it?",
    "A neighbour in the village reads Japanese and says it means that on foggy nights the bell "
    "is to be rung three times. The station order in the log says two. So either Kenji made a "
    "mistake, or on some nights the bell was a signal for somebody who knew the difference. I "
    "went up and counted: the clapper has three worn faces, and the third one is worn the most "
    "of all.",
    "Today I cleaned the lens, all two hundred and eight prisms, with vinegar and an old shirt. "
    "While I was at it a fulmar came in by the gallery door and would not leave. I called her "
    "Captain. She ate half a tin of sardines and was sick on volume twelve. I dried the page by "
    "the stove; it is the week in which Sunniva stopped writing the names of ships altogether.",
    "From that week on she writes letters instead of names: P on Mondays, K on Fridays, now and "
    "then an R with a ring around it. I made a table. P comes only when the moon is new. K comes "
    "with parcels: flour, lamp wick, and once a violin string. R has come four times in two "
    "years, and each time the next day's page has been cut out with something very sharp.",
    "Tobias brought the mail and a bag of onions. He also brought his mother, Agnes, who is "
    "eighty eight and was the postmistress here. She looked at my table and turned quite pale. "
    "Then she said: ring R was not a ship, child, ring R was my brother Rasmus. He drowned in "
    "1963, as everyone believes. She would say no more and went to wait in the boat in the rain.",
    "I found a photograph of Rasmus Reck on slide nineteen. He stands on our jetty next to "
    "Kenji, and they hold a crate between them with the word OPTIK on it. Behind them lies the "
    "Petrel: a small grey coaster with a patched funnel. What would people smuggle with the word "
    "optics on the box? 😮 Lenses? Or was the box just a box, and the word a joke between the "
    "two of them?",
    "Letter from the maritime museum: the Petrel was registered in Riga, sold in 1959 and "
    "reported lost in 1964 with a crew of five. The clerk added a line in Russian by hand, for "
    "she had it from the old register: «Груз не указан, груз не найден». No cargo stated, no "
    "cargo found. That is a strange thing to write of a ship that lies in forty fathoms of "
    "water.",
    "There is a second key. It was sewn into the hem of Sunniva's oilskin, and it fits the "
    "locker under the stairs which I took for a fuse box. Inside: a violin without strings, a "
    "school atlas, and eighteen letters tied with lamp wick. They are in Spanish, from a woman "
    "called Inés Calderón in Vigo. The first one begins: «Querida hermana del faro, la niña ya "
    "camina».",
    "Dear sister of the lighthouse, the little girl already walks. Wren, there was a child. The "
    "letters run from 1962 to 1971. The girl is called Lucía, she is fond of figs and afraid of "
    "thunder, and every letter ends with thanks for the money. Sunniva earned ninety crowns a "
    "month; the sums that Inés thanks her for are four times as much. Where did it come from?",
    "I added it all up by the lamp. Between 1962 and 1971 seven thousand two hundred crowns went "
    "to Vigo. The museum says a first-class lighthouse prism was worth a hundred and fifty then. "
    "And our lens has two hundred and eight prisms where the plan on the wall says two hundred "
    "and fifty six. Forty-eight are missing. Forty-eight times one hundred and fifty: count it.",
    "Exactly. She sold the light, prism by prism, through the Petrel and the crate marked OPTIK, "
    "and nobody noticed because she turned the blind side to the land. I sat on the stairs and "
    "laughed until Captain came to look. She robbed the state of a fifth of a lighthouse in "
    "order to raise a child in Spain. Whose child, though? Hers? Inés writes: tu sobrina, your "
    "niece.",
    "A niece, then, so the child of a brother or a sister. Sunniva had one brother, my "
    "grandfather Anders, who never left the valley and could not swim. Or sister is meant as "
    "nuns mean it. I asked Agnes by telephone. After a long silence she said: Rasmus had a wife "
    "in Vigo. She said it the way you put down something heavy, and then she asked me what the "
    "weather was like.",
    "Storm, three days. The sea goes over the jetty and the radio only hisses. I read the whole "
    "of volume nine by candlelight. In January 1963, on the night when Rasmus drowned, Sunniva "
    "writes: bell three times, no answer, bell three times, no answer, bell until my hands bled. "
    "The next page is not cut out. It is only blank, and the ink of the date has run.",
    "So he was on his way here, in fog, and she rang for him, and he did not come. The station "
    "order allowed two strokes; she was fined for the third. I found the fine, twelve crowns, "
    "paid in coins. Kenji had gone by then. There is a postcard from him from Pusan, one line "
    "only: 종은 아직 울리나요? Does the bell still ring? She kept it inside the bell's "
    "maintenance book.",
    "The storm is over and the locker has a false floor. I noticed because the violin rattled "
    "when I put it back. Under the board lay volume seven. Nobody stole it lately: I had made "
    "the clean dust myself when I moved the shelf. I had suspected poor Emil for five weeks! I "
    "called him and confessed, and he said that he would forgive me for one bottle and a good "
    "story.",
    "Volume seven is the winter with Kenji. He taught her to read the stars in his way and she "
    "taught him to knit. He writes on one page himself, in a mixture of languages: "
    "灯台の人はよく笑う, the lighthouse person laughs a lot. Nobody in my family ever told me "
    "that she laughed. At home they called her the stone. There is a drawing of the two of them "
    "with the fulmar, too.",
    "A fulmar in 1961! They live for forty years and more, I looked it up, but sixty would be a "
    "record. Still, Captain sits in the same corner of the gallery as the bird in the drawing. I "
    "have decided to believe it. The drawing has a date, the ninth of February, and a title in "
    "Chinese characters that I copied for the neighbour: 守灯人与鸟. Keeper of the light and "
    "bird.",
    "I wrote to Vigo. It was foolish, sixty years late, to an address from a bundle of letters. "
    "Calle del Príncipe 14. Tobias took the letter and asked what was in it, and I said: a "
    "question to somebody who likes figs. He is a good man, he did not ask again. He looked at "
    "the stamp for a long time and then he said that his uncle Rasmus used to send figs at "
    "Christmas.",
    "While I wait I am repairing the bell. The bearing is bronze and has seized; Emil lent me a "
    "blow lamp and a file. The rope has been gone for years, so I spliced a new one from the "
    "ferry's old mooring line, eleven metres. When I rang it to try it, all the dogs of the "
    "village answered across the sound, and somebody over there put on a light and put it out "
    "three times.",
    "It was Agnes who put out the light. She told me on Thursday. In the old days that was the "
    "answer: three strokes from the island, three times dark from the post office, and it meant "
    "that the coast was clear. She was in it as well! The postmistress, the keeper, the sailor "
    "and the drowned man. She is a little proud of it, I think, and her hands shook when she "
    "spoke.",
    "She told me the rest over soup. Rasmus did not smuggle for himself. The village school had "
    "burned in 1958 and the state would not pay, so the first twelve prisms became a roof. The "
    "next ones became a midwife's boat. Only after the wedding in Vigo the money went south. I "
    "must have sat under that roof for nine years, learning sums, and never knew that it was "
    "made of glass.",
    "An answer from Vigo! I hardly dared to open it. It is from Lucía herself, sixty-one years "
    "old, a teacher of physics, of all things optics. She writes: «Mi madre me contó que una luz "
    "me pagó los estudios. Creí que era una manera de hablar». My mother told me that a light "
    "paid for my studies. I believed it was a manner of speaking. She wants to come in "
    "September, with figs.",
    "I have told the harbour office that I need until November. They asked on what grounds, and "
    "I said: family. Then I spent the day making a bed in the lamp room, where one can see both "
    "coasts. I took the drawing of Kenji and Sunniva to be framed. The framer, a young man "
    "called Pavel Lind, found a second sheet behind it: a list of forty-eight numbers with names "
    "beside.",
    "Each number is a prism and each name is what it was turned into. Number 3: slates. Number "
    "17: spectacles for Ole. Number 22, a violin string, which explains the K that brought one. "
    "Number 40: forty kilos of coal for Mother Lind, that is Pavel's own great-grandmother; he "
    "had to sit down. The last one, number 48, has no word beside it, only a small drawn star "
    "and a date.",
    "The date is the day after tomorrow, but sixty years ago. I looked at the lens again, from "
    "the outside, hanging on Emil's rope like a spider, because the blind side can only be seen "
    "from there. In the forty-eighth place, where there should be a hole, something is stuck "
    "into the frame: a flat bottle, green, sealed with wax. I have it here before me on the "
    "table, Wren.",
    "I waited for Lucía to open it; it seemed to be hers. She came with Tobias yesterday, small "
    "and quick, with grey hair and a suitcase full of fruit. She broke the wax with a butter "
    "knife. There is one prism in it, wrapped in a page of the log, and the page says: for the "
    "girl, so that she has a piece of it when they notice. They never did notice. We both cried "
    "a little.",
    "We put the prism back. Lucía worked out the angle on the back of an envelope, and Emil held "
    "the ladder and swore in four languages. Tonight the beam has one more ray than yesterday "
    "and it goes straight to the village. At ten o'clock we rang three times, and over there a "
    "window went dark, and light, and dark, and light, and dark, and light. Good night, Wren. 🌟",
)
"""Her own words, in the order in which she says them."""

_AFTERWARDS = "I could not sleep and turned another leaf by the lamp. Let me read it to you."

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("October", "November", "December", "January", "February", "March", "April", "May")
_WINDS = ("south-west", "west", "north-west", "north", "north-east", "east", "south-east", "south")
_SEAS = (
    "a long swell under a grey sky",
    "short steep waves in the sound",
    "smooth water as far as the skerries",
    "breakers over the outer rocks",
    "a confused sea after the turn of the tide",
)
_SHIPS = (
    "the timber schooner Aurora with deals for Hull",
    "the mail steamer Kong Harald, nineteen minutes late",
    "two herring boats from Brevik, low in the water",
    "the survey vessel Meridian, which dipped her flag",
    "the collier Dunmore, listing a little to port",
    "a white yacht without a name",
    "the salt ship Esperanza, bound for the canneries",
    "the pilot cutter with old Nils at the tiller",
    "the tug Samson and a barge of gravel",
)
_WORKS = (
    "trimmed the wick and wound the clockwork twice in the watch",
    "scraped and painted the gallery rail, red lead first",
    "carried nine cans of oil up the hundred and four steps",
    "mended the hen house, where a board had come loose in the gale",
    "polished the reflector and wrote to the inspector about the cracked pane",
    "set the clock by the noon signal and found it slow",
    "swept the chimney and burned the nest that was in it",
)
_GUESTS = (
    "a pilot came in out of the rain, dried his boots at the stove and left a pound of coffee",
    "the schoolmistress rowed over with six children who wished to see the lamp being lit",
    "an eider with a hurt wing was found on the steps and given the empty coal box",
    "the inspector looked into every cupboard but one and praised the brass",
    "nobody came, and the cat from the boathouse slept on the chart table all day",
    "a young man from the telegraph company measured the rock and would not say for what",
    "the doctor came for the boathouse keeper's cough and stayed for a game of draughts",
    "two fishermen asked for shelter and sang until the small hours",
    "a parcel was left at the jetty with no name on it but a knot that is tied in only one family",
    "the minister called, spoke of the harvest, and took a dozen eggs to the mainland",
    "the oil boat could not land and lay off until dusk before it turned back",
)
_REMARKS = (
    "The lamp burned clear all night and the second watch was quiet.",
    "Twice the flame smoked, and the glass had to be changed by hand in the dark.",
    "Many birds against the panes after midnight, most of them thrushes.",
    "A green light was seen low in the west for some minutes and not accounted for.",
    "The bell was not needed, though there was a bank of fog over the mainland until dawn.",
)


def log_page(number: int) -> str:
    """Page `number` (from 0) of the keepers' log: deterministic, no two alike within a lifetime."""

    def pick(words: tuple[str, ...]) -> str:
        return words[number % len(words)]

    hens, oil, glass = 7 + number % 5, 180 - number % 90, 738 + number * 5 % 37
    return (
        f"Page {number + 41} of the log reads: {pick(_DAYS)}, {1 + number * 3 % 28} "
        f"{pick(_MONTHS)}. Wind {pick(_WINDS)}, force {2 + number * 5 % 8}, {pick(_SEAS)}. "
        f"Barometer {glass}. Passed at dawn: {pick(_SHIPS)}; towards evening "
        f"{_SHIPS[(number + 4) % len(_SHIPS)]}. In the forenoon the keeper "
        f"{pick(_WORKS)}, and after the meal {_WORKS[(number + 3) % len(_WORKS)]}. "
        f"In the course of the day {pick(_GUESTS)}. {pick(_REMARKS)} Oil in store "
        f"{oil} litres, eggs {hens}, bread for {2 + number % 9} days. Signed S. Skarv."
    )


def messages() -> Iterator[str]:
    """Marit's messages, without end: her story with two pages of the log to each piece of it."""
    for number in count():
        told = PASSAGES[number] if number < len(PASSAGES) else _AFTERWARDS
        yield f"{told}\n\n{log_page(2 * number)}\n\n{log_page(2 * number + 1)}\n\n{_QUESTION}"
