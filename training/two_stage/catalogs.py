"""Invented lists of choices of many kinds and sizes, as callers bring them: sections, forums, mail, departments, documents, shelves.

No text is labelled with them. `echo` rows ask for them anyway, with stage A's own distribution as the target, so that stage B
learns to add nothing where it knows nothing.
"""

import random

LISTS = [
    # news and magazines
    "world; business; sport; science and technology",
    "politics; economy; culture; sports; science",
    "local news; international; markets; lifestyle; opinion; weather",
    "companies; stock exchange; football; computing; diplomacy; space flight",
    "headlines; finance; health; travel; entertainment; environment; education",
    "foreign affairs; domestic politics; labour; industry; the arts; crime; accidents",
    "earnings report; merger or takeover; product launch; election; armed conflict; sports result; discovery; lawsuit",
    "market news; match report; gadget review; war and peace; film premiere",
    "international relations; corporate news; athletics; software and internet",
    # forums
    "gardening; knitting; woodworking; photography; running; chess; board games; astronomy; birds; aquariums; cooking; model trains",
    "linux; windows; mac; android; hardware; networking; databases; web design; games",
    "parenting; pregnancy; dogs; cats; horses; relationships; weddings",
    "hiking; cycling; motorcycles; classic cars; boats; flying; camping",
    "theology; philosophy; ethics; history of religion; unbelief",
    "buying and selling; introductions; off-topic; site feedback; events",
    "hockey leagues; baseball statistics; tennis; cricket; rugby; basketball; golf",
    # mail and messages
    "spam; personal message; work message; newsletter",
    "advertisement; private note; bill; appointment; warning",
    "unwanted advertising; wanted message",
    "junk; not junk",
    "genuine; fraudulent",
    "prize notification; family chat; delivery notice; bank notice; invitation; reminder",
    "promotion; social; updates; forums; primary",
    "urgent; can wait; no reply needed",
    "phishing; legitimate",
    "message from a friend; message from a company; automatic message",
    "commercial offer; personal conversation",
    "scam; harmless",
    # departments and queues
    "billing; shipping; technical support; sales",
    "human resources; legal; finance; it; facilities; marketing",
    "emergency; cardiology; children; surgery; eye clinic; pharmacy",
    "claims; underwriting; renewals; complaints",
    "front desk; housekeeping; restaurant; concierge; maintenance",
    "admissions; library; student housing; exams office; scholarships",
    "roads; waste; parks; schools; taxes; permits; police",
    "accounts; returns; warranty; spare parts; press",
    "refund request; order status; change of address; lost parcel; complaint; praise; question about a product; cancellation; payment problem; login problem",
    "blocked card; standing order; foreign currency; branch hours; deposit; loan repayment; proof of identity; account closure; charges; dispute",
    # documents and things
    "invoice; contract; letter; report; form; certificate",
    "recipe; poem; news article; manual; advert; diary entry",
    "question; statement; request; complaint; greeting",
    "fact; opinion",
    "formal; informal",
    "fiction; non-fiction",
    "people; places; firms; dates; quantities",
    "animal; plant; mineral; machine; food; building; vehicle",
    "who; what; where; when; why; how",
    "name of a person; place; amount; reason; definition; thing",
    "physics; chemistry; biology; geology; astronomy; medicine; mathematics",
    # tools
    "translate text; search flights; weather forecast; play music; convert currency; summarise a page; draw a picture; find a recipe; calculate; send an email; read a pdf; check a website; stock prices; book a table; track a parcel; write code; plan a trip; find a job; look up a word; manage a calendar; shop online; video transcripts; make a chart; test a site; sports scores; dating advice; legal advice; crypto prices; real estate; horoscope",
    "file search; web search; calculator; calendar; image generation; database query; code runner",
    "timer; alarm; lights; heating; shopping list; phone call; navigation; radio; news briefing; joke",
    "wake me; say it louder; tell a story; roll the dice; small talk; start over; help",
    "cookery; shopping for food; eating out; diets",
    "breakdown; refuelling; route; parking; toll",
    "mortgage; savings; statement; loan; card",
    # mood and moderation
    "happy; sad; afraid; angry; surprised; disgusted",
    "hateful; not hateful",
    "toxic; civil",
    "allowed; remove; needs review",
    "constructive; destructive",
    "sarcastic; sincere",
    "polite; rude",
    "very good; good; mixed; bad; very bad",
    "positive; negative",
    "recommend; do not recommend",
    "for; against; undecided",
    "threat; insult; spam; harmless",
    "bullying; joke; news; personal story",
    # longer choices
    "the sender wants to sell something; the sender wants to meet; the sender asks for help; the sender only informs",
    "it is about money; it is about health; it is about time; it is about people",
    "the text tells a story; the text explains something; the text gives an opinion; the text asks a question",
    "someone is angry with a company; someone thanks a helper; someone looks for advice; someone tells a joke",
    "a problem with a device; a problem with a person; a problem with an order; no problem at all",
    "the customer has not received the goods; the customer was charged too much; the customer cannot sign in; the customer wants to change an order; the customer is happy",
]
PARSED = [tuple(part.strip() for part in text.split(";")) for text in LISTS]


def catalog(rng: random.Random, sentences: list[str]) -> tuple[str, ...]:
    """A list as it stands or a part of it, two lists joined, or sentences of other texts as choices."""
    draw = rng.random()
    if draw < 0.3:
        return tuple(dict.fromkeys(rng.sample(sentences, rng.choice([2, 3, 4, 4, 5, 5, 8]))))
    one = list(rng.choice(PARSED))
    if draw < 0.5:
        one += rng.choice(PARSED)
    if draw < 0.58:
        for _ in range(4):
            one += rng.choice(PARSED)
    choices = list(dict.fromkeys(one))
    most = 32 if draw < 0.58 else 16
    if len(choices) > most or (len(choices) > 3 and rng.random() < 0.3):
        choices = rng.sample(choices, min(most, max(2, int(len(choices) * rng.uniform(0.4, 1)))))
    return tuple(choices)
