// Command empty is the baseline of every start-up figure: a Go program that does nothing.
package main

func main() {}
