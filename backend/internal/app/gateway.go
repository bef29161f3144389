package app

import (
	"fmt"
	"net/http"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/modelapi"
)

// mountGateway adds the gateway's routes. Calls that still run when the requests have ended are settled before the
// database closes.
func (a *App) mountGateway(mux *http.ServeMux, f *features, o Options) error {
	catalogue, err := gateway.LoadCatalogue(a.config.GatewayCatalogue)
	if err != nil {
		return fmt.Errorf("setting gateway_catalogue: %w", err)
	}
	for _, m := range catalogue.Models {
		if m.Why != "" {
			o.Log.Warn("model not offered", "model", m.ID, "reason", m.Why)
		}
	}
	calls := gateway.New(gateway.Options{Catalogue: catalogue, Purse: f.credit, Keys: a.store, Log: o.Log})
	a.last = append(a.last, calls)
	modelapi.New(modelapi.Options{Keys: f.projects, Gateway: calls, Log: o.Log}).Mount(mux)
	return nil
}
