//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

// forwarded is the only signal there is here. It goes to the command as well by itself.
var forwarded = []os.Signal{os.Interrupt}

func fromTerminal(os.Signal) bool { return true }

func exitCode(p *os.ProcessState) int { return p.ExitCode() }
