package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/pgrecall/pgrecall/recall"
)

type eraseCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	confirmSettings  `embed:""`
	Resource         string `arg:"" help:"The resource: the user whose threads, messages and all else are to be erased."`
}

// Validate refuses a missing or malformed database URL.
func (c *eraseCommand) Validate() error { return c.validate() }

// Run asks whether what is held of a resource is to be erased, erases it, and prints
// the receipt.
func (c *eraseCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		if !c.Yes {
			holdings, err := m.Resource(ctx, c.Resource)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Held of %q: %s.\nErase it for good? [y/N] ", c.Resource, countsText(holdings.Counts))
			if err := confirm(ctx, term, question); err != nil {
				return err
			}
		}
		receipt, err := m.EraseResource(ctx, c.Resource)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Erased of %q at %s: %s.", c.Resource, receipt.ErasedAt.Format(time.RFC3339), countsText(receipt.Counts))
		return c.print(term, text, map[string]any{
			"resourceId": receipt.ResourceID, "erasedAt": receipt.ErasedAt, "counts": countsResult(receipt.Counts),
		})
	})
}

func countsText(c recall.Counts) string {
	return fmt.Sprintf("%d threads, %d messages, %d vectors, %d working memories in %d versions, %d jobs, %d idempotency keys",
		c.Threads, c.Messages, c.Vectors, c.WorkingMemory, c.Versions, c.Jobs, c.IdempotencyKeys)
}

func countsResult(c recall.Counts) map[string]any {
	return map[string]any{
		"threads": c.Threads, "messages": c.Messages, "vectors": c.Vectors, "workingMemory": c.WorkingMemory,
		"versions": c.Versions, "jobs": c.Jobs, "idempotencyKeys": c.IdempotencyKeys,
	}
}

// confirm asks a question on a terminal, and fails unless the answer is yes.
func confirm(ctx context.Context, t terminal, question string) error {
	if file, ok := t.in.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return errors.New("nobody to ask here: give PGRECALL_YES=true (--yes)")
	}
	fmt.Fprint(t.log, question)
	return isYes(ctx, t.in)
}

// isYes reads an answer, and fails unless it is yes.
func isYes(ctx context.Context, in io.Reader) error {
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n') // without an answer it is none
		answers <- answer
	}()
	select {
	case answer := <-answers:
		if answer := strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return errors.New("nothing erased")
		}
		return nil
	case <-ctx.Done():
		return errors.New("nothing erased")
	}
}
