package modelapi

import (
	"net/http"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/httpjson"
)

// model is one entry of GET /v1/models.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	DisplayName string `json:"display_name"`
	API         string `json:"api"`                // which of the interfaces the model is called by
	Resolves    string `json:"resolves,omitempty"` // the model behind an id that is a project's setting
}

// modelOf describes the model with an id. For gateway.Assistant that is the model that the project's settings choose.
func modelOf(a gateway.Availability) model {
	m := model{ID: a.ID, Object: "model", OwnedBy: a.Model.Provider.ID, DisplayName: a.Model.Name,
		API: string(a.Model.API)}
	if a.ID != a.Model.ID {
		m.Resolves = a.Model.ID
	}
	return m
}

// withModels answers with the result of pick for the caller's models.
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

// allModels lists what the caller can call.
func allModels(list []gateway.Availability, _ *http.Request) (any, error) {
	models := []model{}
	for _, one := range list {
		if one.Why == "" {
			models = append(models, modelOf(one))
		}
	}
	return map[string]any{"object": "list", "data": models}, nil
}

// oneModel describes a model, or says why it cannot be called.
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
	return nil, noModel("there is no such model: GET /v1/models lists the models that exist")
}

func noModel(message string) error {
	return &gateway.Refusal{Code: gateway.CodeModelNotFound, Param: "model", Message: message}
}
