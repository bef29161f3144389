package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/glasses"
)

// PeerID identifies a connection to a session's glasses. The host assigns the numbers.
type PeerID int64

// NoPeer is the PeerID that belongs to no connection.
const NoPeer PeerID = 0

// Action is what a host must do with an Output.
type Action int

// Actions of a host.
const (
	// Refuse sends Data, an error frame, to the peer whose frame is being handled. Err is the reason.
	Refuse Action = iota
	// ToApps sends Data to every attached app.
	ToApps
	// ToGlasses sends Data to the glasses.
	ToGlasses
	// Append adds Row to the event log. Unless the service itself sent Row, Append also acknowledges it to the sender
	// of the frame being handled. If Row is a successful result, Answered is the command that it answers.
	Append
	// Acknowledge acknowledges Row, which was added to the log for an earlier frame.
	Acknowledge
)

// Output is one action for the host.
type Output struct {
	Action   Action
	Data     []byte // a text frame
	Err      error
	Row      glasses.Event
	Answered *Command
}

// CommandWait is how long a session waits for an answer of the glasses. The glasses must answer within 10 s, with a
// timeout error if necessary. The extra time lets their own answer reach the log before the session writes a timeout.
const CommandWait = 10_500 * time.Millisecond

// maxPending is the maximum number of commands that are waiting for a result. Rates and deadlines do not limit memory
// enough: at 200 frames a second, sleeps of ten minutes and 64 KB each would occupy 16 GB, whereas 1024 of them occupy
// at most 128 MB. Apps that send at that rate, after a burst of 400, do not reach the limit if the glasses answer
// within three seconds.
const maxPending = 1024

// Options configures a Broker.
type Options struct {
	// Recent is how many frames the broker remembers to detect repetitions. A repetition of an older frame counts as
	// new.
	Recent int
	// CommandWait is how long the glasses may take to answer, in addition to the command's own duration.
	CommandWait time.Duration
	// NoGlasses is the error message for commands that fail because no glasses are attached.
	NoGlasses string
}

// Broker is the state of one session. It is not safe for concurrent use.
type Broker struct {
	options  Options
	recent   recentFrames
	pending  map[string]Command // nil until there is one
	commands int64              // number of commands sent by apps
}

// New returns the broker of a new session.
func New(o Options) *Broker {
	return &Broker{options: o, recent: newRecentFrames(o.Recent)}
}

// Restore applies a row that an earlier broker of the session logged. Call it for all rows in order. A command
// without a result becomes pending, as if it had been sent at asked. If row is a result, Restore returns the
// command that it answers.
func (b *Broker) Restore(row glasses.Event, asked time.Time) (answered Command) {
	frame := sentFrame{seq: row.Seq}
	if row.Sender != glasses.SenderService {
		frame.digest = b.recent.digest(row.Type, row.Payload)
	}
	b.recent.add(keyOf(row.Sender, row.ID, row.Kind), frame)
	switch row.Kind {
	case glasses.KindRequest:
		b.add(row.ID, NewCommand(row.Type, row.Payload), asked) // the log also contains the result of a refused command
	case glasses.KindResult:
		answered = b.pending[row.ID]
		delete(b.pending, row.ID)
	}
	return answered
}

// Logged records the seq of an appended row, with which the broker acknowledges later repetitions of the row's frame. A
// host whose log detects repetitions itself need not call it.
func (b *Broker) Logged(row glasses.Event) {
	key := keyOf(row.Sender, row.ID, row.Kind)
	if frame, known := b.recent.find(key); known {
		frame.seq = row.Seq
		b.recent.known[key] = frame
	}
}

// Knows reports whether sender has already sent a frame with the ID and kind of f.
func (b *Broker) Knows(sender string, f glasses.Frame) bool {
	_, known := b.recent.find(keyOf(sender, f.ID, glasses.KindOf(f.Type)))
	return known
}

// FromApp handles an admitted frame from an app. player is the peer that acts as the glasses, or NoPeer. raw is the
// frame as received, including fields unknown to this version. The caller must not modify raw until the command has a
// result.
func (b *Broker) FromApp(now time.Time, player PeerID, f glasses.Frame, raw []byte) []Output {
	if out, isRepeat := b.repeat(now, glasses.SenderApp, f); isRepeat {
		return out
	}
	out := []Output{{Action: Append, Row: rowOf(now, glasses.SenderApp, f)}}
	if glasses.KindOf(f.Type) != glasses.KindRequest {
		return out
	}
	value, err := glasses.ParseCommand(f.Type, f.Payload)
	if err != nil {
		return append(out, b.FailCommand(now, f.ID, glasses.CodeBadPayload, err.Error())...)
	}
	if len(b.pending) >= maxPending && f.Type != glasses.TypeClockCancel { // cancelling ends a pending command
		message := fmt.Sprintf("%d commands are already waiting for their result", maxPending)
		return append(out, b.FailCommand(now, f.ID, glasses.CodeBusy, message)...)
	}
	b.add(f.ID, Command{Type: f.Type, Payload: f.Payload, Value: value, askedOf: player, raw: raw}, now)
	if player == NoPeer {
		return append(out, b.NotConnected(now, f.ID)...)
	}
	return append(out, Output{Action: ToGlasses, Data: raw})
}

// FromGlasses handles an admitted result or event from glasses. It accepts frames from the player. It also accepts
// results from glasses that received the command before another peer became the player.
func (b *Broker) FromGlasses(now time.Time, from, player PeerID, f glasses.Frame, raw []byte) []Output {
	cmd, isPending := b.pending[f.ID]
	isResult := f.Type == glasses.TypeResult
	wasAsked := isResult && isPending && (cmd.askedOf == from || cmd.askedOf == NoPeer)
	if from != player && !wasAsked {
		return refuse(now, f.ID, errOnlooker)
	}
	if err := checkEvent(f); err != nil {
		return refuse(now, f.ID, err)
	}
	row := rowOf(now, glasses.SenderGlasses, f)
	var answered *Command
	if isResult {
		res, err := glasses.ParseResult(f.Payload)
		if err != nil {
			return refuse(now, f.ID, err)
		}
		if !isPending && !b.Knows(glasses.SenderGlasses, f) {
			return refuse(now, f.ID, errUnasked)
		}
		row.Chip = glasses.ChipErrors
		if res.OK {
			row.Chip, answered = glasses.ChipOf(cmd.Type), &cmd
		}
	}
	if out, isRepeat := b.repeat(now, glasses.SenderGlasses, f); isRepeat {
		return out
	}
	if isResult {
		delete(b.pending, f.ID)
	}
	var out []Output
	if isResult || glasses.FromGlasses(f.Type) { // a frame of an unknown type is only logged
		out = append(out, Output{Action: ToApps, Data: raw})
	}
	return append(out, Output{Action: Append, Row: row, Answered: answered})
}

// repeat reports whether the frame was sent before, and records a new frame. A repetition is acknowledged but not
// relayed. The contents of results are not compared, because after a change of glasses both pairs may answer, and the
// first answer counts.
func (b *Broker) repeat(now time.Time, sender string, f glasses.Frame) (out []Output, isRepeat bool) {
	kind, digest := glasses.KindOf(f.Type), b.recent.digest(f.Type, f.Payload)
	key := keyOf(sender, f.ID, kind)
	before, known := b.recent.find(key)
	switch {
	case !known:
		b.recent.add(key, sentFrame{digest: digest})
		return nil, false
	case kind == glasses.KindResult && before.digest == 0:
		return refuse(now, f.ID, &glasses.Error{Code: glasses.CodeTimeout,
			Message: "the command has already been answered; this result is too late"}), true
	case kind != glasses.KindResult && before.digest != digest:
		return refuse(now, f.ID, &glasses.Error{Code: glasses.CodeIDReused,
			Message: "id was already used for another frame in this session; start ids with a random prefix"}), true
	}
	row := rowOf(now, sender, f)
	row.Seq = before.seq
	return []Output{{Action: Acknowledge, Row: row}}, true
}

func refuse(now time.Time, id string, err error) []Output {
	return []Output{{Action: Refuse, Data: ErrorFrame(now, id, err), Err: err}}
}

// ErrorFrame returns an error frame that refuses the frame with this ID. An error that is not a *glasses.Error becomes
// bad_frame.
func ErrorFrame(now time.Time, id string, err error) []byte {
	refusal := badFrame(err.Error())
	_ = errors.As(err, &refusal)
	return Encode(now, glasses.TypeError, id, refusal)
}

// Replay returns the frame for a row, with the row's seq, for an app that attaches with a cursor. It returns nil if the
// row is not for apps.
func Replay(row glasses.Event) []byte {
	if row.Sender == glasses.SenderApp || row.Type != glasses.TypeResult && !glasses.FromGlasses(row.Type) {
		return nil
	}
	return Payload(glasses.Frame{
		V: glasses.Version, Type: row.Type, ID: row.ID, At: row.At, Seq: row.Seq, Payload: row.Payload,
	})
}

// rowOf returns the row of the event log for a peer's frame.
func rowOf(now time.Time, sender string, f glasses.Frame) glasses.Event {
	chip := glasses.ChipOf(f.Type)
	if sender == glasses.SenderApp && !glasses.IsCommand(f.Type) {
		chip = glasses.ChipCustom // even if the service or the glasses use the same type
	}
	return glasses.Event{At: now.UnixMilli(), Kind: glasses.KindOf(f.Type), Chip: chip, Type: f.Type, ID: f.ID,
		Sender: sender, Payload: f.Payload}
}

// ServiceRow returns the row for an event of the service itself. The row has no ID.
func ServiceRow(now time.Time, typ string, payload any) glasses.Event {
	return glasses.Event{At: now.UnixMilli(), Kind: glasses.KindEvent, Chip: glasses.ChipOf(typ), Type: typ,
		Sender: glasses.SenderService, Payload: Payload(payload)}
}

// Encode returns a text frame of the service itself. payload must be encodable as JSON.
func Encode(now time.Time, typ, id string, payload any) []byte {
	return Payload(glasses.Frame{V: glasses.Version, Type: typ, ID: id, At: now.UnixMilli(), Payload: Payload(payload)})
}

// Payload encodes v, a structure of this module whose encoding cannot fail.
func Payload(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}
