package glasses

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Proof is how well this service has been proven on the real glasses of a device model.
type Proof struct {
	// State is one of the Proof constants.
	State string `json:"state"`
	// Reason explains the state.
	Reason string `json:"reason"`
	// recorded lists the capabilities shown in records of runs on real glasses; the rest is proven at most against an
	// emulated peripheral.
	recorded []recorded
}

// recorded is a capability shown over one carrier in a record of a run on real glasses.
type recorded struct{ carrier, capability string }

// States of a Proof.
const (
	// ProofEmulated: our driver passes its tests against an emulated peripheral; no run on hardware has been
	// recorded.
	ProofEmulated = "emulated"
	// ProofHardware: the repository has a record of a run on real glasses (servicectl glasses bench).
	ProofHardware = "hardware"
	// ProofPhoneOnly: only an app on a phone can reach the glasses. Such an app may act as the glasses (PROTOCOL.md).
	ProofPhoneOnly = "phone_only"
	// ProofNone: there is no driver.
	ProofNone = "none"
)

//go:embed records
var recordFiles embed.FS

// ourRecords returns the records in the repository.
var ourRecords = sync.OnceValues(func() ([]BenchRecord, error) { return readRecords(recordFiles) })

func readRecords(files fs.FS) (list []BenchRecord, err error) {
	names, err := fs.Glob(files, "records/*.json")
	for _, name := range names {
		data, readErr := fs.ReadFile(files, name)
		if readErr != nil {
			return nil, readErr
		}
		r, parseErr := ParseBenchRecord(data)
		if parseErr != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), parseErr)
		}
		list = append(list, r)
	}
	return list, err
}

// ProofOf returns the proof for a device model.
func ProofOf(deviceModel string) Proof {
	records, _ := ourRecords() // a test reads every record
	return proofOf(deviceModel, records)
}

// proofOf returns the proof given these records. Only runs on real glasses count, and only for a model with a driver.
func proofOf(deviceModel string, records []BenchRecord) Proof {
	proof := proofWithoutRecords(deviceModel)
	if proof.State != ProofEmulated {
		return proof
	}
	for _, r := range records {
		if r.DeviceModel != deviceModel || r.Against != AgainstReal {
			continue
		}
		for _, capability := range r.Shown() {
			if one := (recorded{r.Carrier, capability}); !slices.Contains(proof.recorded, one) {
				proof.recorded = append(proof.recorded, one)
			}
		}
	}
	if len(proof.recorded) == 0 {
		return proof
	}
	shown := make([]string, 0, len(proof.recorded))
	for _, r := range proof.recorded {
		shown = append(shown, r.capability+" over "+r.carrier)
	}
	proof.State = ProofHardware
	proof.Reason = "recorded on real glasses: " + strings.Join(shown, ", ") + "; the rest against an emulated peripheral"
	return proof
}

// Of returns the state of one capability over one carrier, or over any carrier if it is empty.
func (p Proof) Of(carrier, capability string) string {
	isRecorded := slices.ContainsFunc(p.recorded, func(r recorded) bool {
		return (carrier == "" || r.carrier == carrier) && r.capability == capability
	})
	if p.State == ProofHardware && !isRecorded {
		return ProofEmulated
	}
	return p.State
}

func proofWithoutRecords(deviceModel string) Proof {
	phone := func(why string) Proof { return Proof{State: ProofPhoneOnly, Reason: why} }
	switch deviceModel {
	case "even_g1", "brilliant_frame", "brilliant_halo":
		return Proof{State: ProofEmulated, Reason: "built from the vendor's published protocol and proven against an " +
			"emulated peripheral; not yet run on real glasses"}
	case "rayban_display", "rayban_meta", "oakley_meta_hstn":
		return phone("Meta's Device Access Toolkit works in phone apps only")
	case "android_xr_display":
		return phone("apps are projected from an Android phone")
	case "even_g2":
		return phone("the vendor offers apps inside its phone app, without access to Bluetooth")
	case "system_audio":
		return Proof{State: ProofNone, Reason: "a headset has no panel or inputs of its own that this service could drive"}
	}
	return Proof{State: ProofNone, Reason: "there is no driver yet"}
}
