package glassesapp

import "time"

// RecordVersion is the version of Record.
const RecordVersion = 1

// The values of Record.Against: what a bench ran against, according to the user.
const (
	AgainstReal     = "real"
	AgainstEmulated = "emulated"
	AgainstUnknown  = "unknown" // no user was there to ask
)

// Record contains the measurements of one run of `servicectl glasses bench`. Times are in ms. It contains no address
// and no serial number, and the name of the pair only on request.
type Record struct {
	Record int       `json:"record"` // RecordVersion
	At     time.Time `json:"at"`     // start of the run
	// Against is one of the Against constants.
	Against     string `json:"against"`
	DeviceModel string `json:"deviceModel"`
	Carrier     string `json:"carrier"` // e.g. bluez
	Name        string `json:"name,omitempty"`
	// Firmware holds what each link reported about itself, by key. It omits links that reported nothing.
	Firmware map[string]string `json:"firmware"`
	Service  string            `json:"service"` // version of this service
	System   string            `json:"system"`  // operating system and architecture, e.g. linux/amd64
	// Panel holds the user's earlier answers about the panel.
	Panel RecordPanel `json:"panel"`

	// Connect is the time from the request until all links were up and the batteries known. It includes the search
	// for the glasses.
	Connect    RecordConnect    `json:"connect"`
	Pictures   RecordPictures   `json:"pictures"`
	Battery    map[string]int   `json:"battery"` // percent, by link
	Inputs     RecordInputs     `json:"inputs"`
	Microphone RecordMicrophone `json:"microphone"`
	Reconnect  RecordReconnect  `json:"reconnect"`
}

// RecordPanel holds the user's answers about a panel.
type RecordPanel struct {
	Inverted bool `json:"inverted"`
	Rows     int  `json:"rows"` // 0 means the model's height
	Checked  bool `json:"checked"`
}

// RecordConnect is the first step of a bench.
type RecordConnect struct {
	Skipped string `json:"skipped,omitempty"` // reason, as in the other steps
	Ms      int64  `json:"ms"`
}

// RecordPictures holds the time of each full picture, from the command until all links had acknowledged it.
type RecordPictures struct {
	Asked    int     `json:"asked"`
	Ms       []int64 `json:"ms"` // times of the pictures that were shown
	MedianMs int64   `json:"medianMs"`
	LeastMs  int64   `json:"leastMs"`
	MostMs   int64   `json:"mostMs"`
	// Error is the error of the latest picture that was not shown.
	Error string `json:"error,omitempty"`
}

// RecordInputs holds the inputs that the user made.
type RecordInputs struct {
	Skipped string   `json:"skipped,omitempty"`
	Seen    []string `json:"seen"` // kinds of inputs, with the side if known, such as tap right
}

// RecordMicrophone describes the sound that the microphone sent. Levels are in dB relative to full scale.
type RecordMicrophone struct {
	Skipped  string  `json:"skipped,omitempty"`
	Chunks   int     `json:"chunks"` // number of chunks of 100 ms
	ListenMs int64   `json:"listenMs"`
	LevelDB  float64 `json:"levelDb"` // root mean square
	PeakDB   float64 `json:"peakDb"`
	Error    string  `json:"error,omitempty"`
}

// RecordReconnect describes a connection that the user broke.
type RecordReconnect struct {
	Skipped string `json:"skipped,omitempty"`
	State   string `json:"state,omitempty"` // lossy or lost, while it was broken
	AwayMs  int64  `json:"awayMs"`          // time until all links were up again; 0 if the glasses did not reconnect
}
