package passkey

import (
	"encoding/base64"
	"encoding/json"

	"github.com/go-webauthn/webauthn/webauthn"
)

// The account as the WebAuthn library asks for it.

// WebAuthnID is the account's id; authenticators keep it and give it back.
func (h Holder) WebAuthnID() []byte { return []byte(h.ID) }

// WebAuthnName is what the authenticator shows.
func (h Holder) WebAuthnName() string { return h.Email }

// WebAuthnDisplayName is what the authenticator shows.
func (h Holder) WebAuthnDisplayName() string { return h.Email }

// WebAuthnCredentials are those that can be read; one that cannot signs nobody in.
func (h Holder) WebAuthnCredentials() []webauthn.Credential {
	var all []webauthn.Credential
	for _, p := range h.Passkeys {
		var c webauthn.Credential
		if json.Unmarshal(p.Credential, &c) == nil {
			c.Authenticator.SignCount = p.SignCount
			all = append(all, c)
		}
	}
	return all
}

func (h Holder) with(credentialID []byte) *Stored {
	id := base64.RawURLEncoding.EncodeToString(credentialID)
	for i := range h.Passkeys {
		if h.Passkeys[i].CredentialID == id {
			return &h.Passkeys[i]
		}
	}
	return nil
}
