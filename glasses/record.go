package glasses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// RecordVersion is the version of BenchRecord.
const RecordVersion = 1

// What a bench ran against, as stated by the user who ran it.
const (
	AgainstReal     = "real"
	AgainstEmulated = "emulated"
	AgainstUnknown  = "unknown" // no user was there to ask
)

// Capabilities that a bench can show.
const (
	CapabilityDisplay    = "display"
	CapabilityInput      = "input"
	CapabilityMicrophone = "microphone"
	CapabilityBattery    = "battery"
	CapabilityReconnect  = "reconnect"
)

// BenchRecord holds the measurements of one run of `servicectl glasses bench` measured. Times are in ms. It contains
// no address and no serial number, and the name of the pair only on request.
type BenchRecord struct {
	Record int       `json:"record"` // RecordVersion
	At     time.Time `json:"at"`     // start of the run
	// Against is one of the Against constants.
	Against     string `json:"against"`
	DeviceModel string `json:"deviceModel"`
	Carrier     string `json:"carrier"` // e.g. bluez
	Name        string `json:"name,omitempty"`
	// Firmware is what each link reported about itself, by key; links that reported nothing are omitted.
	Firmware map[string]string `json:"firmware"`
	Service  string            `json:"service"` // version of this service
	System   string            `json:"system"`  // operating system and architecture, e.g. linux/amd64
	// Panel holds the user's earlier answers about the panel.
	Panel BenchPanel `json:"panel"`

	// Connect is the time from the request until all links were up and the batteries known, including the search for
	// the glasses.
	Connect    BenchConnect    `json:"connect"`
	Pictures   BenchPictures   `json:"pictures"`
	Battery    map[string]int  `json:"battery"` // percent, by link
	Inputs     BenchInputs     `json:"inputs"`
	Microphone BenchMicrophone `json:"microphone"`
	Reconnect  BenchReconnect  `json:"reconnect"`
}

// BenchPanel holds the user's answers about a panel.
type BenchPanel struct {
	Inverted bool `json:"inverted"`
	Rows     int  `json:"rows"` // 0 means the model's height
	Checked  bool `json:"checked"`
}

// BenchConnect is the first step of a bench.
type BenchConnect struct {
	Skipped string `json:"skipped,omitempty"` // reason, as in the other steps
	Ms      int64  `json:"ms"`
}

// BenchPictures holds the time of each full picture, from the command until all links had acknowledged it.
type BenchPictures struct {
	Asked    int     `json:"asked"`
	Ms       []int64 `json:"ms"` // of the pictures that were shown
	MedianMs int64   `json:"medianMs"`
	LeastMs  int64   `json:"leastMs"`
	MostMs   int64   `json:"mostMs"`
	// Error is the error of the last picture that was not shown.
	Error string `json:"error,omitempty"`
}

// BenchInputs holds the inputs that the user made.
type BenchInputs struct {
	Skipped string   `json:"skipped,omitempty"`
	Seen    []string `json:"seen"` // kinds, with the side if known: tap right
}

// BenchMicrophone describes the sound that the microphone sent. Levels are in dB relative to full scale.
type BenchMicrophone struct {
	Skipped  string  `json:"skipped,omitempty"`
	Chunks   int     `json:"chunks"` // of 100 ms
	ListenMs int64   `json:"listenMs"`
	LevelDB  float64 `json:"levelDb"` // root mean square
	PeakDB   float64 `json:"peakDb"`
	Error    string  `json:"error,omitempty"`
}

// BenchReconnect describes a connection that the user broke.
type BenchReconnect struct {
	Skipped string `json:"skipped,omitempty"`
	State   string `json:"state,omitempty"` // lossy or lost, while it was broken
	AwayMs  int64  `json:"awayMs"`          // from the break until all links were up again; 0 if they did not come back
}

// maxRecord limits a record, in bytes.
const maxRecord = 64 << 10

// ParseBenchRecord decodes and checks a record.
func ParseBenchRecord(data []byte) (r BenchRecord, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if len(data) > maxRecord {
		return r, fmt.Errorf("the record has %d bytes, at most %d are allowed", len(data), maxRecord)
	}
	if err = d.Decode(&r); err != nil {
		return r, fmt.Errorf("read the record: %w", err)
	}
	_, isKnown := Model(r.DeviceModel)
	switch {
	case d.More():
		err = fmt.Errorf("the record continues after its end")
	case r.Record != RecordVersion:
		err = fmt.Errorf("record is %d, this version reads %d", r.Record, RecordVersion)
	case !isKnown:
		err = fmt.Errorf("deviceModel %.50q is not known", r.DeviceModel)
	case !slices.Contains([]string{AgainstReal, AgainstEmulated, AgainstUnknown}, r.Against):
		err = fmt.Errorf("against must be real, emulated or unknown, not %.50q", r.Against)
	case r.At.IsZero() || r.Carrier == "" || r.Service == "" || r.System == "":
		err = fmt.Errorf("at, carrier, service or system is missing")
	case len(r.Pictures.Ms) > r.Pictures.Asked:
		err = fmt.Errorf("pictures.ms has %d times of %d pictures", len(r.Pictures.Ms), r.Pictures.Asked)
	}
	return r, err
}

// quiet is the level, in dB relative to full scale, below which a microphone counts as silent.
const quiet = -70

// Shown returns the capabilities that the record's measurements demonstrate.
func (r BenchRecord) Shown() (list []string) {
	for capability, isShown := range map[string]bool{
		CapabilityDisplay:    len(r.Pictures.Ms) > 0 && len(r.Pictures.Ms) == r.Pictures.Asked,
		CapabilityInput:      len(r.Inputs.Seen) > 0,
		CapabilityMicrophone: r.Microphone.Chunks > 0 && r.Microphone.LevelDB > quiet,
		CapabilityBattery:    len(r.Battery) > 0,
		CapabilityReconnect:  r.Reconnect.AwayMs > 0,
	} {
		if isShown {
			list = append(list, capability)
		}
	}
	slices.Sort(list)
	return list
}
