package dataset

import (
	"crypto/md5" //nolint:gosec // for spread, not for secrets
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// The words of the texts. What is said is nonsense, but words are as common and as
// rare as in life, and the sentences of a message are about one thing, so that
// searching has something to find.

// topics hold topicNouns nouns each. A run of topicRun messages is about one.
var topics = []string{
	"parcel warehouse courier label pallet depot invoice customs carton barcode shipment refund",
	"flight airport suitcase passport hotel visa luggage terminal ticket itinerary museum ferry",
	"recipe oven flour butter saucepan onion garlic soup pastry spice kettle whisk",
	"garden tulip compost hedge seedling greenhouse shovel lawn orchard beehive fertilizer trellis",
	"doctor clinic prescription allergy vaccine bandage surgeon ward diagnosis thermometer pharmacy nurse",
	"guitar violin concert rehearsal melody orchestra piano drum choir microphone amplifier album",
	"football goalkeeper stadium referee tournament coach striker trophy penalty whistle jersey league",
	"mortgage bank loan pension dividend broker savings budget tax audit ledger salary",
	"laptop keyboard firmware router password backup monitor printer database cable charger server",
	"school teacher homework exam lecture classroom thesis library scholarship textbook essay diploma",
	"dog puppy leash kennel veterinarian cat aquarium parrot hamster hamper stable pony",
	"bicycle helmet pedal tyre saddle trail gearbox brake pump puncture basket lock",
	"car engine bumper windscreen mechanic petrol garage clutch radiator headlight battery mirror",
	"kitchen plumber faucet tile cupboard sink boiler drain wallpaper ceiling carpenter paint",
	"wedding bride cake bouquet invitation banquet ring dress photographer speech toast veil",
	"novel author chapter manuscript publisher poem bookshop editor translation cover plot biography",
	"camera lens tripod portrait darkroom shutter exposure gallery frame negative filter album",
	"mountain tent rope summit glacier compass backpack cabin ridge avalanche boots lantern",
	"beach surfboard lifeguard tide lagoon sandcastle snorkel reef dune sunscreen pier jellyfish",
	"court lawyer contract witness verdict judge lawsuit testimony clause settlement notary affidavit",
	"election candidate ballot parliament campaign mayor treaty senator petition minister referendum council",
	"telescope comet planet orbit satellite eclipse crater astronaut rocket galaxy meteor observatory",
	"laboratory microscope enzyme molecule sample centrifuge pipette protein experiment reagent culture genome",
	"farm tractor harvest barn wheat cattle irrigation plough orchard silo fence scarecrow",
	"bakery bread croissant dough yeast counter apron baguette muffin mill crust pretzel",
	"theatre actor stage costume curtain script audience director scenery opera ballet understudy",
	"chess bishop knight pawn rook gambit opening endgame checkmate clock board champion",
	"sweater needle yarn loom quilt thimble zipper button fabric embroidery tailor pattern",
	"coffee espresso teapot barista roast grinder saucer cappuccino mug bean syrup filter",
	"storm thunder blizzard forecast flood hurricane barometer drought fog hail umbrella rainbow",
	"factory conveyor turbine valve welder crane blueprint foreman bolt furnace piston assembly",
	"baby stroller cradle pacifier nursery bottle diaper lullaby daycare blanket rattle crib",
}

var (
	verbs = strings.Fields(`
		moved lost found cleaned opened closed bought sold repaired borrowed painted measured ordered returned counted carried
		praised mentioned compared replaced noticed weighed wrapped checked admired described stored finished started cancelled
		delayed booked shared watched reviewed sketched promised forgot planned tested collected sorted inspected exchanged
		cleared tidied recorded defended`)
	adjectives = strings.Fields(`
		old new small heavy broken green yellow quiet famous cheap narrow wooden second smooth bright dusty modern empty borrowed
		spare strange gentle local foreign private golden frozen hidden square ancient plain precious`)
	days = strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
	// One of the names is in each message.
	names = strings.Fields(`
		Anna Peter Maria Thomas Julia Daniel Laura Martin Emma Lucas Sophie Oliver Alice Henry Clara Victor Helen Arthur Diana
		Simon Irene Walter Nina Oscar Lily Felix Rosa Hugo Ruby George Ella Frank Nora Edward Olivia Robert Grace Samuel Hannah
		Philip Sarah Adam Jane David Rachel Paul Kate James Susan Michael Carol Leo Amy Ben Lucy Max Ivy Jack Eva Tom Zoe Karl
		Judy Ralph`)
	nouns = strings.Fields(strings.Join(topics, " "))
)

const (
	topicNouns = 12
	topicRun   = 10
	sentences  = 6
)

// text is what a message says. It is the same each time.
func text(thread string, seq int) string {
	topic := anyTopic(drawer(thread, "run", seq/topicRun))
	draw := drawer(thread, "message", seq)
	return fmt.Sprintf("Message %d of %s for %s.", seq, thread, one(names, draw)) + about(topic, draw)
}

// drawer gives what draws numbers of chance, the same for the same seed.
func drawer(seed ...any) func(n int) int {
	sum := md5.Sum(fmt.Append(nil, seed...)) //nolint:gosec // for spread, not for secrets
	source := rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:]))
	return rand.New(source).IntN //nolint:gosec // nothing is secret here
}

// Text is what a message may say, like those that are loaded. draw gives a number
// of chance below n.
func Text(draw func(n int) int) string {
	return "A message for " + one(names, draw) + "." + about(anyTopic(draw), draw)
}

// anyTopic draws the first topics more often than the last.
func anyTopic(draw func(n int) int) int { return min(draw(len(topics)), draw(len(topics))) }

func about(topic int, draw func(n int) int) string {
	var said strings.Builder
	for i := range sentences {
		noun := of(topic, draw)
		if i == 0 {
			noun = one(nouns, draw)
		}
		said.WriteString(" In the end we " + one(verbs, draw) + " the " + one(adjectives, draw) + " " + noun + " on " + one(days, draw) + ".")
	}
	return said.String()
}

// Question is what may be asked about the messages that are loaded: about one
// topic, as people ask, for the graph of vectors finds little of what is near to a
// jumble.
func Question(draw func(n int) int) string {
	topic := anyTopic(draw)
	return "When was it that we " + one(verbs, draw) + " the " + of(topic, draw) + " and the " + of(topic, draw) + " for " + one(names, draw) + "?"
}

func of(topic int, draw func(n int) int) string { return nouns[topic*topicNouns+draw(topicNouns)] }

func one(words []string, draw func(n int) int) string { return words[draw(len(words))] }
