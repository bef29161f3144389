// Command empty is the floor of every start-up figure: a Go program that does nothing.
package main

func main() {}
