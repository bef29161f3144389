package web

// wayIn is a button that signs people in without a password.
type wayIn struct {
	Name   string
	Action string
}

// ways adds to the account form how people may sign in besides a password, as far as this backend has it.
func (w *Web) ways(f accountForm) accountForm { return f }
