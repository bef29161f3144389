package backend

import (
	"context"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// Transport describes the glasses that a transport adapter provides.
type Transport struct {
	Name string
	// Title is the display name.
	Title string
	// DeviceModels lists the IDs of the supported device models; empty for all known models.
	DeviceModels []string
	NeedsAccount bool
	// VirtualClock reports whether the transport supports virtual time.
	VirtualClock bool
	// HostsSessions reports whether a backend hosts the transport's sessions, as it does for the browser
	// simulator.
	HostsSessions bool
}

// Offers reports whether the transport supports a device model.
func (t Transport) Offers(model string) bool {
	return len(t.DeviceModels) == 0 || slices.Contains(t.DeviceModels, model)
}

// TransportOpen is a request to start a session's glasses on a transport.
type TransportOpen struct {
	SessionID   string
	DeviceModel string
	// Virtual selects virtual time, which starts at NowMs and moves only with sim.advance. Otherwise the glasses use
	// the machine's clock.
	Virtual bool
	NowMs   int64 // time on the session's clock, in ms
	// Snapshot is the saved state of the glasses; nil for new ones.
	Snapshot *glasses.Snapshot
	// FixturesDir is the absolute path of a directory with pictures and sounds. If it is empty, the simulator uses
	// its own.
	FixturesDir string
	// Pace makes a simulated panel take as long for each picture as a real one.
	Pace bool
	// Pair is the pair of real glasses. If it has no name, the adapter uses the only pair of this model in range.
	Pair Pair
	// AnyPair is set if the user did not choose Pair. Another pair in range may then be used while Pair is away.
	AnyPair bool
	// Via selects the carrier of real glasses: bluez, browser or auto.
	Via string
	// OnHardware is called from one goroutine when the state of real glasses changes. It may be nil.
	OnHardware func(Hardware)
}

// Glasses is an attached pair of glasses. Only one goroutine at a time may call Send, and only one Receive. Close may
// be called concurrently.
type Glasses interface {
	// Send sends one frame without waiting for the glasses. It returns a *problem.Error if the glasses are detached, or
	// so far behind that the frame was dropped.
	Send(frame []byte, binary bool) error
	// SetPanel sets how the panel of real glasses shows pictures, without waiting for the glasses. It returns the same
	// errors as Send.
	SetPanel(p PairPanel) error
	// Receive waits for the next frame. It returns ctx's error, or a *problem.Error once the glasses are detached
	// permanently and all their frames have been received.
	Receive(ctx context.Context) (frame []byte, binary bool, err error)
	// Close detaches the glasses and waits until all their goroutines have stopped. It may be called more than once.
	Close() error
}

// Pair identifies one pair of real glasses on this computer, and holds the user's description of its panel.
type Pair struct {
	// Name is the name that all parts of the pair advertise, e.g. "Even G1_27".
	Name string `json:"name"`
	// Addresses maps the key of a link, such as left, to the address of its radio.
	Addresses map[string]string `json:"addresses,omitempty"`
	PairPanel
}

// PairPanel is the user's description of a pair's panel. The zero value means that the panel matches the vendor's
// documents.
type PairPanel struct {
	// Inverted is set if the panel lights the pixels of colour 0.
	Inverted bool `json:"inverted,omitempty"`
	Rows     int  `json:"rows,omitempty"`
	// IsChecked is set once the user has confirmed a test picture.
	IsChecked bool `json:"panelChecked,omitempty"`
}

// Hardware is the state of real glasses, as far as their adapter has determined it.
type Hardware struct {
	// Pair has no name until a pair is chosen.
	Pair    Pair
	Carrier string // bluez or browser
	Links   []HardwareLink
	// Problem is the reason why the glasses cannot be connected; nil if there is none.
	Problem *problem.Error
	// ConnectURL is the page on this computer that the user has to open in a browser; empty if none. The page admits
	// one browser, so the URL is shown to the user only and never logged.
	ConnectURL string
	// Steps tell the user how to get the glasses ready.
	Steps []string
	// Answered is the user's description of the panel, entered on the page since the glasses were attached; nil if
	// none.
	Answered *PairPanel
	// Uncleared is set if the panel may still show a picture of an earlier session that did not clear it.
	Uncleared bool
}

// FoundPair is a pair of real glasses in range.
type FoundPair struct {
	Name, DeviceModel string
	Parts             []FoundPart
}

// FoundPart is one radio of a pair, identified by the key of its link. RSSI is in dBm, or 0 if unknown.
type FoundPart struct {
	Key   string
	Found bool
	RSSI  int
}

// HardwareLink is the connection to one radio of a pair.
type HardwareLink struct {
	Key            string
	State          string // up, opening or down
	MTU            int    // in bytes; this field and the next two are 0 if unknown
	RSSI           int    // dBm
	BatteryPercent int
	Firmware       string
}
