package g1

import (
	"image"
	"math/rand/v2"
	"slices"

	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/link"
)

const (
	// heartbeatLimit is the time in ms without a heartbeat after which an arm disconnects (AGiXT).
	heartbeatLimit = 32_000
	// maxMTU is the MTU that the vendor's app requests (vendor: BleManager.kt). The maximum MTU of the glasses is not
	// published.
	maxMTU = 251
	// maxWaiting limits the received packets that wait for their air time.
	maxWaiting = 1024
	// shortestWait is the time in ms during which a client must wait for an answer. The shortest wait of a published
	// client is 300 ms (Mentra).
	shortestWait = 250
)

var _ peripheral.Peripheral = (*Arm)(nil)

// Arm is one arm of a pair.
type Arm struct {
	*link.Link
	pair    *Pair
	side    Side
	faults  Faults
	random  *rand.Rand
	battery int
	bonded  bool
	debug   bool

	packets    int
	busyUntil  int64 // end of the air time of the packets received so far
	waiting    int
	heartbeat  int64 // time of the latest heartbeat, or of the connection
	heartbeats int
	pending    map[byte]int64

	upload  upload
	picture *image.Paletted
	shown   []Shown
	words   words
	text    string
}

func (a *Arm) up() {
	a.busyUntil, a.waiting = a.Now(), 0
	a.upload, a.words = upload{}, words{}
	clear(a.pending)
	a.heartbeat = a.Now()
	a.watch()
	a.scheduleFaults()
}

// down makes the panel dark. It is not published whether real arms keep a picture without a connection, so clients
// must not rely on it.
func (a *Arm) down() {
	a.closePanel()
	a.debug = false
	if a.side == Right {
		a.pair.setMicrophone(false)
	}
}

func (a *Arm) closePanel() { a.picture, a.text = nil, "" }

// watch drops the connection if the client misses its heartbeats.
func (a *Arm) watch() {
	a.AfterLinked(a.heartbeat+heartbeatLimit-a.Now(), func() {
		if a.Now()-a.heartbeat < heartbeatLimit {
			a.watch()
			return
		}
		a.violation("no heartbeat for %d ms", heartbeatLimit)
		a.Drop(0)
	})
}

func (a *Arm) violation(format string, args ...any) {
	a.pair.Add(a.Now(), a.side.String()+": "+format, args...)
}

func (a *Arm) grave(format string, args ...any) {
	a.pair.AddGrave(a.Now(), a.side.String()+": "+format, args...)
}

// Connect implements peripheral.Peripheral.
func (a *Arm) Connect(now int64, mtu int) error { return a.Link.Connect(now, min(mtu, maxMTU)) }

// Pair implements peripheral.Peripheral.
func (a *Arm) Pair(now int64) error {
	a.Tick(now)
	if !a.Connected() {
		return peripheral.ErrNotConnected
	}
	a.bonded = true
	return nil
}

// Read implements peripheral.Peripheral. It fails, because no characteristic is readable.
func (a *Arm) Read(now int64, characteristic string) ([]byte, error) {
	a.Tick(now)
	return nil, a.Check(characteristic, "read")
}

// Write implements peripheral.Peripheral.
func (a *Arm) Write(now int64, characteristic string, value []byte, withResponse bool) error {
	a.Tick(now)
	if err := a.CheckWrite(characteristic, withResponse); err != nil {
		return err
	}
	err := a.receive(value)
	if withResponse {
		return err
	}
	return nil
}

func (a *Arm) receive(value []byte) error {
	if len(value) > a.Payload() {
		a.violation("%d bytes do not fit in an MTU of %d", len(value), a.Payload()+3)
		return peripheral.ErrTooLong
	}
	if a.pair.options.RequireBond && !a.bonded {
		return peripheral.ErrAuthentication
	}
	a.packets++
	if a.faults.DropAfterPackets > 0 && a.packets == a.faults.DropAfterPackets || a.happens(a.faults.Drop) {
		a.Drop(a.faults.away())
		return nil
	}
	if a.waiting >= maxWaiting {
		a.violation("more than %d packets wait for the radio", maxWaiting)
		return nil
	}
	air := a.pair.options.AirTime
	if air <= 0 {
		a.handle(value)
		return nil
	}
	value = slices.Clone(value)
	a.busyUntil = max(a.busyUntil, a.Now()) + air
	a.waiting++
	a.AfterLinked(a.busyUntil-a.Now(), func() {
		a.waiting--
		a.handle(value)
	})
	return nil
}

// Take implements peripheral.Peripheral.
func (a *Arm) Take() []peripheral.Out {
	out := a.Link.Take()
	for _, o := range out {
		if len(o.Value) > 0 {
			delete(a.pending, o.Value[0])
		}
	}
	return out
}

// expectAnswer checks that a client has at most one request of a command outstanding (vendor: ble_manager.dart matches
// answers by arm and first byte only), and asks the right arm only after the left one answered (vendor: README.md).
func (a *Arm) expectAnswer(command byte) {
	if at, ok := a.pending[command]; ok && a.Now()-at < shortestWait {
		a.violation("%02X again before its answer", command)
	}
	leftFirst := command == cmdHeartbeat || command == cmdText || command == cmdExit
	if left := a.pair.arms[Left]; leftFirst && a.side == Right && left.Connected() {
		if at, ok := left.pending[command]; ok && a.Now()-at < shortestWait {
			a.violation("%02X before the left arm answered it", command)
		}
	}
	a.pending[command] = a.Now()
}

// answer sends the answer to a command, subject to the faults.
func (a *Arm) answer(value ...byte) {
	if slices.Contains(a.faults.Mute, value[0]) || a.happens(a.faults.LoseAck) {
		return
	}
	delay := a.pair.options.AnswerTime + a.faults.Late[value[0]]
	if a.happens(a.faults.DelayAck) {
		delay += a.faults.DelayMs
	}
	copies := 1
	if a.happens(a.faults.DuplicateAck) {
		copies = 2
	}
	for range copies {
		if delay <= 0 {
			a.Notify(NotifyUUID, value)
			continue
		}
		a.AfterLinked(delay, func() { a.Notify(NotifyUUID, value) })
	}
}

// padded answers with 20 bytes, the length of most answers in AGiXT's recorded traffic.
func (a *Arm) padded(value ...byte) { a.answer(pad(value...)...) }

func pad(value ...byte) []byte {
	padded := make([]byte, max(20, len(value)))
	copy(padded, value)
	return padded
}
