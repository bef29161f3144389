package app

import (
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/modelapi"
	"github.com/service-dev/service/backend/internal/usage"
)

// newGateway loads the models.
func (a *App) newGateway(f *features, o Options) error {
	catalogue, err := gateway.LoadCatalogue(a.config.GatewayCatalogue)
	if err != nil {
		return fmt.Errorf("setting gateway_catalogue: %w", err)
	}
	for _, m := range catalogue.Models {
		if m.Why != "" {
			o.Log.Warn("model not offered", "model", m.ID, "reason", m.Why)
		}
	}
	f.gateway = gateway.New(gateway.Options{
		Catalogue: catalogue, Purse: f.credit, Keys: a.store, Settings: f.assistant, Log: o.Log,
	})
	f.assistant.TextModels = f.textModels
	f.usage = &usage.Service{Ledger: f.credit, Models: f.gateway, Now: time.Now}
	return nil
}

// textModels are what a project's assistant can be set to.
func (f *features) textModels() (models []assistant.TextModel, standard string) {
	all, standard := f.gateway.TextModels()
	for _, a := range all {
		price := a.Model.Prices
		models = append(models, assistant.TextModel{
			ID: a.ID, Name: a.Model.Name, Description: a.Model.Description, Why: a.Why,
			Price: assistant.TokenPrice{In: price.In, Cached: price.Cached, Out: price.Out},
		})
	}
	return models, standard
}

func mountGateway(mux *http.ServeMux, f *features, o Options) {
	modelapi.New(modelapi.Options{Keys: f.projects, Gateway: f.gateway, Log: o.Log}).Mount(mux)
}
