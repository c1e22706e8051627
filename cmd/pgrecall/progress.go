package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// showProgress draws a bar on a terminal, and writes plain lines elsewhere: one
// for each tenth.
func showProgress(log io.Writer) func(phase string, done, total int) {
	file, ok := log.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return progressLines(log)
	}
	var bar *progressbar.ProgressBar
	var current string
	return func(phase string, done, total int) {
		if phase != current {
			current = phase
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(log), progressbar.OptionSetDescription(phase),
				progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set(done) // what is not shown is no loss
	}
}

func progressLines(log io.Writer) func(phase string, done, total int) {
	var current string
	var tenths int
	return func(phase string, done, total int) {
		if phase != current {
			current, tenths = phase, 0
		}
		if reached := done * 10 / total; reached > tenths {
			tenths = reached
			fmt.Fprintf(log, "%s: %d of %d\n", phase, done, total)
		}
	}
}
