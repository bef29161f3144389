package modelapi

import (
	"net/http"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/internal/problem"
)

// model is an entry of the list at GET /v1/models.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	DisplayName string `json:"display_name"`
	API         string `json:"api"`                // the interface through which the model is called
	Resolves    string `json:"resolves,omitempty"` // the model behind an ID that depends on a project's setting
}

// modelOf returns the list entry of an available model. gateway.Assistant resolves to the model chosen in the
// project's settings.
func modelOf(a gateway.Availability) model {
	m := model{ID: a.ID, Object: "model", OwnedBy: a.Model.Provider.ID, DisplayName: a.Model.Name,
		API: string(a.Model.API)}
	if a.ID != a.Model.ID {
		m.Resolves = a.Model.ID
	}
	return m
}

// withModels returns a handler that responds with the result of pick for the caller's models.
func (a *API) withModels(pick func(list []gateway.Availability, r *http.Request) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
		list, err := a.Gateway.Available(r.Context(), who)
		var answer any
		if err == nil {
			answer, err = pick(list, r)
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		httpjson.Write(w, a.Log, http.StatusOK, answer)
	}
}

// allModels lists the models that the caller can use.
func allModels(list []gateway.Availability, _ *http.Request) (any, error) {
	models := []model{}
	for _, one := range list {
		if one.Why == "" {
			models = append(models, modelOf(one))
		}
	}
	return map[string]any{"object": "list", "data": models}, nil
}

// oneModel describes a model, or returns a refusal with the reason why it cannot be called.
func oneModel(list []gateway.Availability, r *http.Request) (any, error) {
	for _, one := range list {
		switch {
		case one.ID != r.PathValue("id"):
		case one.Why == "":
			return modelOf(one), nil
		default:
			return nil, noModel(one.ID + " is not offered: " + one.Why)
		}
	}
	return nil, noModel("no such model: GET /v1/models lists the available models")
}

func noModel(message string) error {
	return gateway.Refuse(problem.CodeModelNotFound, message).At("model")
}
