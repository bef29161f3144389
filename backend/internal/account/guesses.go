package account

import (
	"context"
	"fmt"
	"time"
)

// Allowances of wrong passwords. They are counted by account, in the store, however many addresses the guesses come from.
//
// A stranger can use up what an account grants to browsers that it was never used in, and no more: a browser that has
// signed in to the account before has an allowance of its own, and a mailed link, a passkey and a provider need no
// password.
const (
	maxGuesses      = 10
	guessEvery      = 6 * time.Minute // one guess comes back: 240 a day against passwords of 10 characters and more
	knownGuessEvery = time.Minute     // the same for a browser that has signed in before
	guessBucket     = 5               // hexadecimal digits of a hash: inventing addresses makes a million rows at most
)

// TooManyGuessesError says that no password is checked for now. It is the same for an address without an account.
type TooManyGuessesError struct{ Wait time.Duration }

// Error names the wait, which is no secret.
func (e *TooManyGuessesError) Error() string {
	return fmt.Sprintf("too many wrong passwords, the next is checked in %s", e.Wait.Round(time.Second))
}

// allowance is whose guesses are counted and how fast they come back.
type allowance struct {
	key   string
	every time.Duration
}

// signInAllowance is that of an address, known or not, or of a browser that has signed in with it before.
func (s *Service) signInAllowance(email, browser string) allowance {
	if browser != "" {
		return allowance{"browser:" + s.hash.Hash("guess", email+"\x00"+browser), knownGuessEvery}
	}
	return allowance{"address:" + s.hash.Hash("guess", email)[:guessBucket], guessEvery}
}

// ownAllowance is that of the forms which ask a signed-in person for the password again.
func (s *Service) ownAllowance(accountID string) allowance {
	return allowance{"account:" + s.hash.Hash("guess", accountID), guessEvery}
}

// guess runs check, which checks a password, and counts it unless it was right. The guess is taken before, so that many
// at once are not checked on one that is left.
func (s *Service) guess(ctx context.Context, of allowance, check func() error) error {
	wait, err := s.store.TakeGuess(ctx, of.key, s.now(), of.every, maxGuesses)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &TooManyGuessesError{Wait: wait}
	}
	if err := check(); err != nil {
		return err
	}
	return s.store.ReturnGuess(ctx, of.key, s.now(), of.every)
}

// checkOwn checks the password of a signed-in person: ErrBadCredentials, *TooManyGuessesError.
func (s *Service) checkOwn(ctx context.Context, a Account, password string) error {
	return s.guess(ctx, s.ownAllowance(a.ID), func() error { return a.check(ctx, password) })
}
