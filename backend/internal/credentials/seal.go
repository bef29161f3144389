package credentials

// The kinds of values that the key file encrypts.
const (
	kindCredential = "credential"
	KindMemory     = "memory" // what an app remembers about a user; its name is the hash of the user's secret
)

// Sealed is an encrypted value that another feature stores, with its encrypted data key and the ID of the key that
// encrypts it. Text is never the same for two values.
type Sealed struct{ Text, Wrapped, KeyID string }

// Seal encrypts a value that another feature stores in a project. It returns ErrNotConfigured if there is no key.
func (s *Service) Seal(kind, account, project, name, value string) (Sealed, error) {
	e, err := s.o.Keys.seal(owner{kind, account, project, name}, value)
	return Sealed{e.sealed, e.wrapped, e.keyID}, err
}

// Unseal decrypts a value that Seal encrypted with the same arguments. It returns ErrNotConfigured, a *MissingKeyError
// or an error for a value that was changed or moved.
func (s *Service) Unseal(kind, account, project, name string, v Sealed) (string, error) {
	return s.o.Keys.open(owner{kind, account, project, name}, envelope{v.Text, v.Wrapped, v.KeyID})
}
