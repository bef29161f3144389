package gateway

import (
	"encoding/base64"

	"github.com/service-dev/service/backend/internal/gateway/resample"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/internal/problem"
)

// providerRate is the sample rate of realtime providers, in Hz.
const providerRate = 24000

// converter converts the sound of a conversation whose app has another sample rate than the provider. Sound from the
// app and sound for it are converted by one goroutine each.
type converter struct{ fromApp, toApp *resample.Resampler }

// newConverter returns nil for an app with the provider's rate, whose sound is never decoded.
func newConverter(rate int) *converter {
	if rate == providerRate {
		return nil
	}
	return &converter{resample.New(rate, providerRate), resample.New(providerRate, rate)}
}

// client converts the sound of an event of the app. It returns the events for the provider.
func (v *converter) client(e wire.ClientEvent) ([]wire.ClientEvent, error) {
	if v == nil {
		return []wire.ClientEvent{e}, nil
	}
	switch e.Type {
	case wire.EventCommit:
		if rest := v.fromApp.Flush(nil); len(rest) > 0 {
			return []wire.ClientEvent{wire.AppendAudio(encode(rest)), e}, nil
		}
	case wire.EventClear:
		v.fromApp.Reset()
	case wire.EventAppend:
		sound, err := decode(e.Audio())
		if err != nil {
			return nil, &wire.FieldError{Code: problem.CodeInvalidValue, Param: "audio", Message: "audio is not Base64"}
		}
		if sound = v.fromApp.Append(nil, sound); len(sound) == 0 {
			return nil, nil
		}
		return []wire.ClientEvent{e.WithAudio(encode(sound))}, nil
	}
	return []wire.ClientEvent{e}, nil
}

// server converts the sound of an event of the provider. It returns the events for the app.
func (v *converter) server(kind string, data []byte) [][]byte {
	if v == nil {
		return [][]byte{data}
	}
	switch kind {
	case wire.EventAudioDelta:
		sound, err := decode(wire.DeltaAudio(data))
		if err != nil {
			return nil
		}
		if sound = v.toApp.Append(nil, sound); len(sound) == 0 {
			return nil
		}
		return [][]byte{wire.WithDelta(data, encode(sound))}
	case wire.EventAudioDone:
		if rest := v.toApp.Flush(nil); len(rest) > 0 {
			return [][]byte{wire.WithDelta(data, encode(rest)), data}
		}
	case wire.EventResponseDone:
		v.toApp.Reset()
	}
	return [][]byte{data}
}

func encode(sound []byte) []byte {
	return base64.StdEncoding.AppendEncode(nil, sound)
}

func decode(text []byte) ([]byte, error) {
	return base64.StdEncoding.AppendDecode(nil, text)
}
