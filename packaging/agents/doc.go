// Package agents holds what real coding agents are tried with. Its tests have the build tag agents, because the agents
// are large: make agents-npm installs them, make agents-test runs them.
package agents
