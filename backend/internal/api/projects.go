package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

// Projects is what the routes need of the projects.
type Projects interface {
	MintKey(ctx context.Context, accountID, project, name string) (projects.Key, error)
}

func (a *API) mountProjects(mux *http.ServeMux) {
	mux.HandleFunc("POST "+backendapi.PathProjects+"/{project}/keys", a.account(a.mintKey))
}

func (a *API) mintKey(w http.ResponseWriter, r *http.Request, who link.Principal) {
	var body backendapi.ProjectKeyRequest
	if err := decode(w, r, &body); err != nil {
		a.fail(w, r, err)
		return
	}
	k, err := a.Projects.MintKey(r.Context(), who.AccountID, r.PathValue("project"), body.Name)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusCreated, backendapi.ProjectKey{ProjectKey: k.Secret, Hint: k.Hint, CreatedAt: timestamp(k.CreatedAt)})
}

// projectRefusal turns the projects' errors into refusals; nil for others.
func projectRefusal(err error) *Refusal {
	var invalid *projects.InvalidError
	switch {
	case errors.As(err, &invalid):
		return refusal(backendapi.CodeInvalidRequest, invalid.Message, "correct the field and try again")
	case errors.Is(err, projects.ErrTooManyKeys):
		return refusal(backendapi.CodeTooManyKeys, "the project has as many keys as it can have", "use a key that is kept already, or another app id")
	}
	return nil
}
