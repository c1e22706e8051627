package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// asProgram makes the test binary the program: a test that kills one needs a
// process.
const asProgram = "PGRECALL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}
