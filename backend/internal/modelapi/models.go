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
	API         string `json:"api"` // which of the interfaces the model is called by
}

// models lists what the caller may use; the first is the one that the project's settings choose.
func (a *API) models(r *http.Request, who gateway.Caller) ([]model, error) {
	offered, assistant, err := a.Gateway.Offered(r.Context(), who)
	if err != nil {
		return nil, err
	}
	list := []model{}
	for _, m := range offered {
		one := model{ID: m.ID, Object: "model", OwnedBy: m.Provider.ID, DisplayName: m.Name, API: string(m.API)}
		list = append(list, one)
		if m.ID == assistant {
			one.ID = gateway.Assistant
			list = append([]model{one}, list...)
		}
	}
	return list, nil
}

// withModels answers with what pick takes of the caller's models.
func (a *API) withModels(pick func(list []model, r *http.Request) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
		list, err := a.models(r, who)
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

func allModels(list []model, _ *http.Request) (any, error) {
	return map[string]any{"object": "list", "data": list}, nil
}

func oneModel(list []model, r *http.Request) (any, error) {
	for _, m := range list {
		if m.ID == r.PathValue("id") {
			return m, nil
		}
	}
	return nil, &gateway.Refusal{Code: gateway.CodeModelNotFound, Param: "model",
		Message: "there is no such model: GET /v1/models lists those that there are"}
}
