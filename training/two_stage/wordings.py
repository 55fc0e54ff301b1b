"""Other ways to say the same: instructions a set may carry, and names a label may have.

A model that sees one question and one spelling a set learns the set. `INSTRUCTIONS` replaces or joins a set's own instruction,
`NAMES` lists names of equal meaning for a label (the label itself need not be repeated).
"""

import random

INTENT = [
    "What does the user want?",
    "What does the user want to do?",
    "What is the customer asking for?",
    "Which intent does this message express?",
    "Pick the intent of this message.",
    "Classify the request.",
    "Which of these describes the request best?",
    "What should the assistant do?",
    "Which action does the user ask for?",
    "intent?",
    "Route this message to the right category.",
    "Choose the category that fits this message.",
    "What is the purpose of this message?",
    "Decide what the speaker is trying to achieve.",
    "Which label fits the utterance?",
]
EMOTION = [
    "Which emotion does the writer express?",
    "Which emotion does the text express?",
    "How does the author feel?",
    "What is the dominant emotion?",
    "Name the feeling behind this comment.",
    "Which mood fits this message best?",
    "What emotion is conveyed here?",
    "Classify the emotion.",
    "What is the person feeling?",
    "emotion of the post",
]
POLARITY = [
    "Is the text positive or negative?",
    "What is the sentiment?",
    "What is the sentiment of this text?",
    "Does the author like it or not?",
    "How favourable is this opinion?",
    "Classify the sentiment.",
    "What opinion does the writer hold?",
    "Is this praise or criticism?",
    "What is the tone of this remark?",
    "Rate the attitude of the writer.",
    "Would you say that this is good or bad?",
]
REVIEW = [
    "Is this movie review positive or negative?",
    "Did the reviewer like the film?",
    "What does the critic think of the film?",
    "Is the reviewer's verdict favourable?",
    *POLARITY,
]
SERVICE = [
    "Who should answer this?",
    "Which service is this meant for?",
    "Where does this request belong?",
    "Who is the message addressed to?",
    "Pass the request on to the right place.",
]
TOPIC = [
    "What is this about?",
    "What is this text about?",
    "What is the topic?",
    "Which topic fits best?",
    "Which subject does the message concern?",
    "Classify the text by topic.",
    "To which area does this message belong?",
    "Which department handles this?",
    "Which section would this appear in?",
    "Which domain is this from?",
]
OFFENCE = [
    "Does this tweet contain hate speech, offensive language, or neither?",
    "How should this post be moderated?",
    "Is this post abusive?",
    "Classify the post for moderation.",
    "Is the language of this post acceptable?",
]
FORM = [
    "Is this search query a well-formed natural language question?",
    "Is this a proper question?",
    "How well is this query written?",
    "Judge the grammar of the query.",
]
CHOOSE = [
    "Which answer is correct?",
    "Which answer fits best?",
    "Choose the right answer.",
    "Which answer or ending is correct?",
    "Answer the question.",
    "Which option is the most sensible?",
    "Pick the best completion.",
]
MEANING = [
    "What does this figurative sentence mean?",
    "What is meant by this?",
    "Which reading of this sentence is right?",
    "Explain the figure of speech.",
]
TITLE = [
    "Which title fits this text?",
    "What is the passage about?",
    "What is the subject of this text?",
    "Which headline belongs to this paragraph?",
    "Name the topic of the passage.",
]
FOLLOWS = [
    "Which statement follows from the text?",
    "Which of these is true according to the text?",
    "What can be concluded?",
    "Which statement does the text support?",
]
WANTED = [
    "What kind of thing is being asked for?",
    "What sort of answer does this question expect?",
    "What would answer this question?",
    "Which type of information is sought?",
]

INSTRUCTIONS = {
    "multidogo_airline": [*INTENT, "What is the passenger doing in this message?"],
    "multidogo_fastfood": [*INTENT, "What is the guest doing in this message?"],
    "multidogo_insurance": [*INTENT, "What is the client doing in this message?"],
    "multidogo_media": INTENT,
    "sgd_intent": INTENT,
    "goemotions": EMOTION,
    "vader_nyt": POLARITY,
    "cad_imdb": REVIEW,
    "hate_offensive": OFFENCE,
    "query_wellformed": FORM,
    "openbookqa": CHOOSE,
    "figqa": MEANING,
}

STATEMENTS = [
    'According to the text, is the following statement true? "{}"',
    'Does the text say that "{}"?',
    'Is it true that "{}"?',
    "{} Is that right, given the text?",
    'Claim: "{}" How does the text bear on it?',
    'Does the statement "{}" follow from the text?',
    "Judge the claim against the text: {}",
]

VERDICTS = [
    ("true", "false", "cannot be determined"),
    ("yes", "no", "unknown"),
    ("yes", "no", "maybe"),
    ("supported", "refuted", "not enough information"),
    ("correct", "incorrect", "unclear"),
    ("entailment", "contradiction", "neutral"),
    ("it follows", "it is contradicted", "it remains open"),
    ("definitely true", "definitely false", "the text does not say"),
]

YES_NO = [
    ("yes", "no"),
    ("yes", "no"),
    ("yes", "no"),
    ("true", "false"),
    ("correct", "incorrect"),
    ("it is", "it is not"),
    ("right", "wrong"),
    ("agree", "disagree"),
]

RESIDUAL = [
    "none of these",
    "none of the above",
    "something else",
    "other",
    "no match",
    "not listed here",
    "anything else",
    "out of scope",
    "unrelated request",
    "no clear request",
]

NAMES = {
    "positive": ["favourable", "good", "praise", "likes it", "approving", "a positive opinion", "thumbs up", "great"],
    "negative": [
        "unfavourable",
        "bad",
        "criticism",
        "dislikes it",
        "disapproving",
        "a negative opinion",
        "thumbs down",
        "terrible",
    ],
    "neutral": ["neither", "no opinion", "matter of fact", "indifferent", "no strong feeling"],
    "admiration": ["admiring", "impressed", "respect"],
    "amusement": ["amused", "finds it funny", "laughing"],
    "anger": ["angry", "furious", "rage", "mad"],
    "annoyance": ["annoyed", "irritated", "irritation"],
    "approval": ["approving", "agrees", "endorsement"],
    "caring": ["compassionate", "concern for someone", "sympathy"],
    "confusion": ["confused", "puzzled", "does not understand"],
    "curiosity": ["curious", "wants to know more", "interest"],
    "desire": ["wanting something", "longing", "wish"],
    "disappointment": ["disappointed", "let down"],
    "disapproval": ["disapproving", "disagrees", "objection"],
    "disgust": ["disgusted", "revulsion", "grossed out"],
    "embarrassment": ["embarrassed", "ashamed", "awkward"],
    "excitement": ["excited", "thrilled", "enthusiasm"],
    "fear": ["afraid", "scared", "frightened"],
    "gratitude": ["grateful", "thankful", "thanks"],
    "grief": ["grieving", "mourning", "loss"],
    "joy": ["happy", "happiness", "joyful", "delighted"],
    "love": ["loving", "affection", "adoration"],
    "nervousness": ["nervous", "anxious", "worried"],
    "optimism": ["optimistic", "hopeful", "hope"],
    "pride": ["proud", "sense of achievement"],
    "realization": ["realises something", "sudden insight"],
    "relief": ["relieved", "glad that it is over"],
    "remorse": ["sorry", "regret", "guilt"],
    "sadness": ["sad", "unhappy", "sorrow", "depressed"],
    "surprise": ["surprised", "astonished", "did not expect it"],
    "hate speech": ["hateful", "attacks a group of people", "incites hatred", "hate"],
    "offensive language but not hate speech": ["offensive", "vulgar but not hateful", "crude language", "rude"],
    "neither": ["harmless", "acceptable", "fine", "not abusive", "clean"],
    "well-formed question": ["well formed", "a proper question", "grammatical"],
    "not a well-formed question": ["badly formed", "not a proper question", "ungrammatical"],
    "more likely": ["strengthens it", "supports it", "makes it more probable"],
    "less likely": ["weakens it", "undermines it", "makes it less probable"],
    "book a flight": ["flight booking", "reserve a plane ticket"],
    "change seat assignment": ["seat change", "move to another seat"],
    "get boarding pass": ["boarding pass request", "obtain the boarding pass"],
    "get seat information": ["ask about the seat", "which seat do I have"],
    "confirms or agrees": ["agreement", "says yes", "affirmation"],
    "declines or says no": ["refusal", "says no", "rejection"],
    "greets": ["greeting", "says hello"],
    "says goodbye": ["farewell", "goodbye"],
    "says thank you": ["thanks", "expresses gratitude"],
    "something outside the domain": ["none of these", "other", "off topic", "something else"],
    "something else / no clear request": ["none of these", "no clear request", "something else", "other"],
    "order a burger": ["burger order", "wants a burger"],
    "order a drink": ["drink order", "wants something to drink"],
    "order a salad": ["salad order", "wants a salad"],
    "order a side dish": ["side dish", "wants fries or another side"],
    "order breakfast": ["breakfast order", "wants breakfast"],
    "order dessert": ["dessert order", "wants something sweet"],
    "order pizza": ["pizza order", "wants a pizza"],
    "check claim status": ["claim status", "asks how the claim is going"],
    "get proof of insurance": ["proof of insurance", "needs an insurance card"],
    "report broken phone": ["broken phone", "phone damage report"],
    "none of these relations": ["none of these", "another relation", "no relation listed"],
}

POLARITY_OF = {
    "positive": [
        "admiration",
        "amusement",
        "approval",
        "excitement",
        "gratitude",
        "joy",
        "love",
        "optimism",
        "pride",
        "relief",
    ],
    "negative": [
        "anger",
        "annoyance",
        "disappointment",
        "disapproval",
        "disgust",
        "embarrassment",
        "fear",
        "grief",
        "nervousness",
        "remorse",
        "sadness",
    ],
}

DOMAINS = {
    "multidogo_airline": ["air travel", "flights", "airline", "flying"],
    "multidogo_fastfood": ["fast food", "food orders", "restaurant", "eating"],
    "multidogo_insurance": ["insurance", "insurance claims", "policies and claims"],
    "newsmtsc": ["politics", "political news", "government and elections"],
    "cad_imdb": ["films", "movies", "cinema", "film review", "entertainment"],
    "nlupp_banking": ["banking", "bank account", "money and payments", "finance"],
    "semeval2010_relation": ["general knowledge", "encyclopaedia"],
    "openbookqa": ["science", "school science", "nature and physics"],
}
SERVICE_DOMAINS = {
    "Restaurants": ["restaurants", "dining", "eating out", "food"],
    "Movies": ["movies", "cinema", "films"],
    "Media": ["films to watch", "streaming video", "television"],
    "Music": ["music", "songs"],
    "Events": ["concerts and sports events", "event tickets", "shows and games"],
    "Flights": ["flights", "air travel", "plane tickets"],
    "Hotels": ["hotels", "accommodation", "places to stay"],
    "Buses": ["bus travel", "coaches", "bus tickets"],
    "RentalCars": ["car rental", "renting a car", "cars"],
    "RideSharing": ["taxis", "ride sharing", "cabs"],
    "Homes": ["apartments", "housing", "real estate"],
    "Banks": ["banking", "bank accounts", "money"],
    "Calendar": ["calendar", "appointments", "schedule"],
    "Weather": ["weather", "weather forecast", "climate"],
    "Services": ["hairdressers, dentists and doctors", "appointments for services", "health and beauty"],
    "Travel": ["sights", "tourism", "attractions to visit"],
    "Alarm": ["alarms", "clock"],
    "Trains": ["train travel", "railways"],
    "Payment": ["payments", "sending money"],
    "Messaging": ["messages", "sharing a location"],
}

TOPICS = """sports; football; baseball; ice hockey; tennis; golf; motor racing; the Olympics; boxing; business; the economy; stock markets; companies;
jobs and hiring; taxes; banking; real estate; shopping; prices; trade; oil and energy; technology; computers; software; the internet; phones;
video games; artificial intelligence; computer security; encryption; electronics; gadgets; science; physics; chemistry; biology; space; astronomy;
mathematics; the environment; climate; weather; animals; pets; gardening; farming; health; medicine; diseases; mental health; fitness; diet; food;
cooking; recipes; restaurants; drinks; travel; hotels; airlines; trains; cars; motorcycles; bicycles; public transport; world news; politics;
elections; government; law; crime; police; courts; war; the military; terrorism; diplomacy; human rights; immigration; guns; the Middle East; Europe;
Asia; Africa; religion; Christianity; Islam; atheism; philosophy; history; art; literature; books; poetry; music; concerts; film; television;
celebrities; fashion; beauty; theatre; photography; education; schools; universities; language; children; parenting; family; relationships;
love and dating; weddings; friendship; work; money; insurance; housing; repairs; furniture; items for sale; advertising; jokes; gossip; holidays;
birthdays; accidents; natural disasters; volunteering; charity; royalty; transport; agriculture; geography; people; places; customer service; complaints;
refunds; deliveries; orders; accounts and passwords; subscriptions; technical problems; appointments; alarms and reminders; small talk""".replace(
    "\n", " "
).split("; ")

KINDS_WANTED = {
    "who": ["a person", "someone's name", "a person or an organisation"],
    "where": ["a place", "a location", "a place name"],
    "when": ["a time or date", "a moment in time", "a date"],
    "how many": ["a number", "a count", "a quantity"],
    "how much": ["a number", "an amount", "a quantity"],
    "how long": ["a length of time", "a duration", "a number"],
    "how to": ["a method", "instructions", "an explanation"],
    "why": ["a reason", "a cause", "an explanation"],
    "what does": ["a description", "a meaning or an explanation", "an explanation"],
    "is": ["yes or no", "a confirmation"],
    "are": ["yes or no", "a confirmation"],
    "can": ["yes or no", "a confirmation"],
}


def renamed(label: str, rng: random.Random) -> str:
    """The label or one of its other names."""
    return rng.choice([label, label, *NAMES.get(label, ())])


def respelled(choices: list[str], rng: random.Random) -> list[str]:
    """The choices in another case or as identifiers, all in the same manner."""
    style = rng.choice(["upper", "title", "capital", "snake", "lower"])
    if style == "snake" and all(len(choice) < 40 for choice in choices):
        spelled = [
            " ".join("".join(c if c.isalnum() else " " for c in choice).split()).replace(" ", "_") for choice in choices
        ]
    else:
        change = {"upper": str.upper, "title": str.title, "capital": str.capitalize, "lower": str.lower}.get(style, str)
        spelled = [change(choice) for choice in choices]
    return spelled if len(set(spelled)) == len(choices) and all(spelled) else choices
