package g1

import "github.com/service-dev/service/test/glassestest/peripheral/link"

// Faults are the faults of one arm. Probabilities are between 0 and 1 and use the seed of the pair.
type Faults struct {
	// LoseAck, DuplicateAck and DelayAck are the probabilities that an answer is lost, sent twice, or sent DelayMs late.
	LoseAck, DuplicateAck, DelayAck float64
	DelayMs                         int64
	// Late maps the first byte of an answer to its delay in ms.
	Late map[byte]int64
	// LosePacket is the probability that a bitmap packet does not reach the arm.
	LosePacket float64
	// Drop is the probability that a packet ends the connection.
	Drop float64
	// DropAfterPackets is the number of the packet, counted over all connections, that ends its connection; 0 means
	// never.
	DropAfterPackets int
	// DropAt is the time in ms at which the connection that is then open ends; 0 means never.
	DropAt int64
	// AwayMs is the time after a drop until the arm advertises again; a negative value means never.
	AwayMs int64
	// Mute lists the first bytes of answers that are never sent.
	Mute []byte
	// FailCRC is how often a CRC is refused.
	FailCRC int
}

func (f *Faults) away() int64 {
	if f.AwayMs < 0 {
		return link.Forever
	}
	return f.AwayMs
}

func (a *Arm) happens(probability float64) bool {
	return probability > 0 && a.random.Float64() < probability
}

func (a *Arm) scheduleFaults() {
	if at := a.faults.DropAt; at > a.Now() {
		a.AfterLinked(at-a.Now(), func() { a.Drop(a.faults.away()) })
	}
}

// SetFaults replaces the faults of an arm.
func (p *Pair) SetFaults(now int64, s Side, f Faults) {
	p.tick(now)
	p.arms[s].faults = f
	p.arms[s].scheduleFaults()
}

// Drop ends the connection of an arm, which advertises again after the given ms; a negative value means never.
func (p *Pair) Drop(now int64, s Side, awayMs int64) {
	p.tick(now)
	away := Faults{AwayMs: awayMs}
	p.arms[s].Drop(away.away())
}

// Occupy makes the vendor's app on a phone take both arms, or release them.
func (p *Pair) Occupy(now int64, taken bool) {
	p.tick(now)
	for _, a := range p.arms {
		a.Occupy(taken)
	}
}

// Inject sends a notification of any length that no real firmware would send.
func (p *Pair) Inject(now int64, s Side, value []byte) {
	p.tick(now)
	p.arms[s].Inject(NotifyUUID, value)
}

// Hostile returns notifications that a client must survive: empty and oversized ones, an audio packet of a wrong
// length, parts of texts, answers to commands that were not sent, and events that do not exist.
func Hostile() [][]byte {
	return [][]byte{
		nil, make([]byte, 600), {'n'}, []byte(firmware[:7]), append([]byte{cmdAudio}, make([]byte, 200)...),
		{cmdAudio}, {cmdEvent}, {cmdEvent, 0xEE}, {cmdCRC}, {cmdCRC, ok}, pad(cmdCRC, 1, 2, 3, 4, ok), pad(cmdEnd, ok),
		{cmdEnd}, pad(cmdText, ok), pad(cmdMicrophone, ok, 1), {cmdMicrophone}, pad(cmdExit, failed), {cmdHeartbeat},
		{cmdHeartbeat, 6, 0}, {cmdBattery, 0x66}, pad(cmdBattery, 0x66, 0xFF), {cmdSerial, 0x34}, {cmdSerial}, {cmdDebug},
		{0xFF}, {0},
	}
}
