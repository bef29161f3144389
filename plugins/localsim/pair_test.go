package localsim

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/plugins/internal/attachtest"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// serveSim serves the adapter over an in-memory connection until the test ends.
func serveSim(t *testing.T) pluginv1.TransportClient {
	return attachtest.Serve(t, newSim(slog.New(slog.DiscardHandler)))
}

// pair is a session's glasses from the daemon's point of view.
type pair struct {
	*attachtest.Pair
	t *testing.T
}

func attachPair(t *testing.T, c pluginv1.TransportClient, o *pluginv1.AttachOpen) *pair {
	t.Helper()
	return &pair{attachtest.Attach(t, c, o), t}
}

// advance moves virtual time forward step by step and returns the number of steps.
func (p *pair) advance(to int64) (steps int) {
	p.t.Helper()
	for {
		steps++
		if c := p.Must(glasses.SimAdvance, fmt.Sprintf(`{"toMs":%d}`, to)).Clock; c.Reached {
			return steps
		}
	}
}

func TestAttach_ConformsToTheProtocol(t *testing.T) {
	for _, model := range []string{"rayban_display", "even_g1", "system_audio"} {
		t.Run(model, func(t *testing.T) {
			attachPair(t, serveSim(t), &pluginv1.AttachOpen{DeviceModel: model}).Conforms(t, model)
		})
	}
}
