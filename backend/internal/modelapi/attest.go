package modelapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/internal/problem"
)

const (
	attestPath = root + "attest/"
	attestRoot = "POST " + attestPath
	maxProof   = 64 << 10 // bytes of the body of an attestation
)

// proof is the body of the routes that attest an install. Each route uses some of the fields.
type proof struct {
	Challenge string `json:"challenge"`
	KeyID     string `json:"keyId"`     // of App Attest, in base64
	Object    string `json:"object"`    // attestation or assertion of App Attest, in base64
	Install   string `json:"install"`   // random ID that the app keeps: 16 to 64 letters, digits, - and _
	Token     string `json:"token"`     // of Play Integrity
	Signature string `json:"signature"` // with the project's test key, in base64
}

// decode returns the bytes of a field in base64. Bytes that are not base64 are refused as malformed when they are
// verified.
func decode(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return data
}

// attestRoutes lists the routes that attest installs. They require a project key.
func (a *API) attestRoutes() []route {
	routes := []route{{attestRoot + "challenge", a.challenge}}
	for _, one := range []struct {
		name   string
		attest func(context.Context, projects.KeyOwner, proof) (attest.Token, error)
	}{
		{"apple", func(ctx context.Context, who projects.KeyOwner, p proof) (attest.Token, error) {
			return a.Installs.Apple(ctx, who, p.Challenge, decode(p.KeyID), decode(p.Object))
		}},
		{"apple/assertion", func(ctx context.Context, who projects.KeyOwner, p proof) (attest.Token, error) {
			return a.Installs.AppleAssertion(ctx, who, p.Challenge, decode(p.KeyID), decode(p.Object))
		}},
		{"google", func(ctx context.Context, who projects.KeyOwner, p proof) (attest.Token, error) {
			return a.Installs.Google(ctx, who, p.Challenge, p.Install, p.Token)
		}},
		{"development", func(ctx context.Context, who projects.KeyOwner, p proof) (attest.Token, error) {
			return a.Installs.Development(ctx, who, p.Challenge, p.Install, decode(p.Signature))
		}},
	} {
		routes = append(routes, route{attestRoot + one.name,
			func(w http.ResponseWriter, r *http.Request, who gateway.Caller) { a.attest(w, r, who, one.attest) }})
	}
	return routes
}

// keyOwner returns the owner of the project key that the app uses. It refuses tokens with 403, because clients take 401
// for a token that has expired, and would attest again.
func keyOwner(who gateway.Caller) (projects.KeyOwner, error) {
	if who.Session != "" || who.Install != "" {
		return projects.KeyOwner{}, gateway.Refuse(problem.CodeProjectKeyRequired,
			"installs attest with the project key, and this is the token of a session or an install: send the project key")
	}
	return projects.KeyOwner{AccountID: who.Account, Project: who.Project, KeyID: who.Key}, nil
}

func (a *API) challenge(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
	owner, err := keyOwner(who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	c, err := a.Installs.Challenge(r.Context(), owner)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	httpjson.Write(w, a.Log, http.StatusOK, map[string]string{"challenge": c.Text, "nonce": c.Nonce,
		"expiresAt": c.ExpiresAt.Format(time.RFC3339)})
}

func (a *API) attest(w http.ResponseWriter, r *http.Request, who gateway.Caller,
	attestInstall func(context.Context, projects.KeyOwner, proof) (attest.Token, error),
) {
	owner, err := keyOwner(who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	body, err := readJSON(w, r, maxProof, fmt.Sprintf("%d KB", maxProof>>10))
	var p proof
	if err == nil && json.Unmarshal(body, &p) != nil {
		err = gateway.Refuse(problem.CodeInvalidJSON,
			"the body must be a JSON object with challenge and the fields of the route, each a string")
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	t, err := attestInstall(r.Context(), owner, p)
	var refused *attest.Refused
	if errors.As(err, &refused) {
		err = gateway.Refuse(problem.CodeAttestationFailed, "the attestation was refused: "+refused.Reason+
			"; request a new challenge before you try again").Because(refused.Reason)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	httpjson.Write(w, a.Log, http.StatusOK, map[string]string{"token": t.Text, "install": t.Install,
		"expiresAt": t.ExpiresAt.Format(time.RFC3339)})
}
