package account

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// FileName is the file's name inside the state directory.
const FileName = "auth.json"

// maxFile bounds what is read of the file, in bytes.
const maxFile = 64 << 10

// maxToken bounds a token, in bytes: it must fit into a header.
const maxToken = 8 << 10

// authFile is auth.json: the five fields of spec 2.4 and backendUrl (design D3).
type authFile struct {
	AuthToken  string  `json:"authToken"`
	AccountID  string  `json:"accountId"`
	LinkedAt   string  `json:"linkedAt"`
	ExpiresAt  *string `json:"expiresAt"`
	Scope      string  `json:"scope"`
	BackendURL string  `json:"backendUrl"`
}

// parse reads auth.json. Its errors name fields and never their values.
func parse(data []byte) (Link, error) {
	var f *authFile
	if err := json.Unmarshal(data, &f); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return Link{}, errors.New("field " + wrong.Field + " has the wrong type")
		}
		return Link{}, errors.New("it is not a JSON object")
	}
	if f == nil {
		return Link{}, errors.New("it is not a JSON object")
	}
	switch {
	case !headerSafe(f.AuthToken):
		return Link{}, errors.New("field authToken is missing or is not a token")
	case f.AccountID == "":
		return Link{}, errors.New("field accountId is missing")
	}
	l := Link{
		State: Linked, AuthToken: Secret(f.AuthToken), AccountID: f.AccountID, Tier: TierFree,
		Scope: f.Scope, BackendURL: f.BackendURL,
	}
	var err error
	if f.LinkedAt != "" {
		if l.LinkedAt, err = time.Parse(time.RFC3339, f.LinkedAt); err != nil {
			return Link{}, errors.New("field linkedAt is not a time")
		}
	}
	if f.ExpiresAt != nil && *f.ExpiresAt != "" {
		at, err := time.Parse(time.RFC3339, *f.ExpiresAt)
		if err != nil {
			return Link{}, errors.New("field expiresAt is not a time")
		}
		l.ExpiresAt = &at
	}
	return l, nil
}

// headerSafe tells whether a token can stand in an Authorization header.
func headerSafe(token string) bool {
	if token == "" || len(token) > maxToken {
		return false
	}
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// format writes the link into what the file held before, so that fields unknown here survive. What was not an object is
// replaced.
func format(before []byte, l Link) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(before, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{}
	}
	f := authFile{
		AuthToken: l.AuthToken.Reveal(), AccountID: l.AccountID, LinkedAt: l.LinkedAt.UTC().Format(time.RFC3339),
		Scope: l.Scope, BackendURL: l.BackendURL,
	}
	if l.ExpiresAt != nil {
		at := l.ExpiresAt.UTC().Format(time.RFC3339)
		f.ExpiresAt = &at
	}
	known, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(known, &fields); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(fields, "", "  ")
	return append(data, '\n'), err
}
