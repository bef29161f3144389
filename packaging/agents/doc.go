// Package agents contains the tests with real coding agents. They have the build tag agents, because the agents are
// large: make agents-npm installs them, make agents-test runs them.
package agents
