package backend

import (
	"context"
	"slices"

	"github.com/service-dev/service/glasses"
)

// Transport is what a transport adapter describes: the glasses that it provides.
type Transport struct {
	Name string
	// Title is the name for people.
	Title string
	// DeviceModels are the ids of its device models; empty for every known one.
	DeviceModels []string
	NeedsAccount bool
	// VirtualClock reports whether it supports virtual time.
	VirtualClock bool
	// HostsSessions reports whether a backend hosts its sessions, as those of the browser simulator.
	HostsSessions bool
}

// Offers reports whether the transport has a device model.
func (t Transport) Offers(model string) bool {
	return len(t.DeviceModels) == 0 || slices.Contains(t.DeviceModels, model)
}

// TransportOpen is the request to open a session's glasses with a transport.
type TransportOpen struct {
	SessionID   string
	DeviceModel string
	// Virtual time starts at NowMs and moves only with sim.advance. Real time is the machine's clock.
	Virtual bool
	NowMs   int64 // the session's clock, in ms
	// Snapshot is the saved state of the glasses; nil for new ones.
	Snapshot *glasses.Snapshot
	// FixturesDir is an absolute folder with pictures and sounds; if empty, the simulator uses its own.
	FixturesDir string
	// Pace makes a simulated panel take the time of a real one for each picture.
	Pace bool
	// Pair is the pair of real glasses. Without a name the adapter takes the only one of this model in range.
	Pair Pair
	// AnyPair is set if nobody chose Pair, so that another one in range may be taken while it is away.
	AnyPair bool
	// Via is the carrier of real glasses: bluez, browser or auto.
	Via string
	// OnHardware is called when the state of real glasses changes, by one goroutine; nil for nobody.
	OnHardware func(Hardware)
}

// Glasses is an attached pair of glasses. Send and Receive may each be called by one goroutine at a time, Close by any
// number.
type Glasses interface {
	// Send sends one frame without waiting for the glasses. An error is a *Problem: the glasses are gone, or so far
	// behind that the frame was dropped.
	Send(frame []byte, binary bool) error
	// SetPanel tells real glasses how their panel shows pictures, without waiting for them. Errors are those of Send.
	SetPanel(p PairPanel) error
	// Receive waits for the next frame. The error is ctx's error, or a *Problem once the glasses are detached permanently
	// and everything they sent has been received.
	Receive(ctx context.Context) (frame []byte, binary bool, err error)
	// Close detaches the glasses and waits until all their goroutines have stopped. It may be called more than once.
	Close() error
}

// Pair identifies one pair of real glasses on this computer, and holds what a person said about its panel.
type Pair struct {
	// Name is the name that all parts of the pair advertise, e.g. "Even G1_27".
	Name string `json:"name"`
	// Addresses are the radios' addresses, by the key of the link, e.g. left.
	Addresses map[string]string `json:"addresses,omitempty"`
	PairPanel
}

// PairPanel is what a person said about the panel of a pair. The zero value means what the vendor's documents say.
type PairPanel struct {
	// Inverted is set if the panel lights the pixels of colour 0; Rows is its height, 0 for the model's height.
	Inverted bool `json:"inverted,omitempty"`
	Rows     int  `json:"rows,omitempty"`
	// IsChecked is set once a test picture was right.
	IsChecked bool `json:"panelChecked,omitempty"`
}

// Hardware is what an adapter of real glasses knows about them.
type Hardware struct {
	// Pair has no name until one is chosen.
	Pair    Pair
	Carrier string // bluez or browser
	Links   []HardwareLink
	// Problem says why they cannot be connected; nil if they can.
	Problem *Problem
	// ConnectURL is the page on this computer that a person has to open in a browser; "" if none has to be opened. It
	// admits one browser, so it is for the person only: it is not logged.
	ConnectURL string
	// Steps say how a person gets the glasses ready.
	Steps []string
	// Answered is what the person said about the panel on the page since the glasses were attached; nil if nothing.
	Answered *PairPanel
	// Uncleared is set if the panel may still show a picture of an earlier session, which did not clear it.
	Uncleared bool
}

// FoundPair is a pair of real glasses in range.
type FoundPair struct {
	Name, DeviceModel string
	Parts             []FoundPart
}

// FoundPart is one radio of a pair, by the key of its link. RSSI is in dBm, 0 if unknown.
type FoundPart struct {
	Key   string
	Found bool
	RSSI  int
}

// HardwareLink is the connection to one radio of a pair.
type HardwareLink struct {
	Key            string
	State          string // up, opening or down
	MTU            int    // bytes; this and the next two are 0 if unknown
	RSSI           int    // dBm
	BatteryPercent int
	Firmware       string
}
