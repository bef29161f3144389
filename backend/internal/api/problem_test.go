package api

import (
	"errors"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/internal/problem"
)

// A failure of this backend is an internal error, even if a feature describes it as a problem.
func TestRefusalOf_HidesCauses(t *testing.T) {
	failed := gateway.Refuse(problem.CodeUnavailable, "the gateway cannot serve now: try again")
	failed.Err = errors.New("database is closed")
	if e := refusalOf(failed); e != nil {
		t.Errorf("got %+v, want an internal error", e)
	}
	if e := refusalOf(gateway.Refuse(problem.CodeNoCredit, "x")); e == nil || e.Code != problem.CodeNoCredit {
		t.Errorf("a refusal: got %+v, want its problem", e)
	}
}
