// Command vulncheck runs the pinned govulncheck over all packages and fails if the code reaches a known
// vulnerability of a module. Those of the Go that builds it are listed with the release that mends them: they are
// a matter of the toolchain, not of the code.
//
// The vulnerabilities come as the module golang.org/x/vulndb, so that a Go proxy is all that it needs.
//
//	go run ./tools/vulncheck
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
	vulndb      = "golang.org/x/vulndb"
	// standard is the name that govulncheck gives to the standard library.
	standard = "stdlib"
)

// accepted vulnerabilities cannot be reached, by the reason that stands beside each.
var accepted = map[string]string{
	"GO-2026-6872": "the server takes a client's address from the connection (echo.ExtractIPDirect), not from a header",
	"GO-2026-6875": "the server is no reverse proxy",
}

// message is one of the messages of govulncheck -format json.
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		// Trace leads from the vulnerable place to the code. Its first frame names a function only if that is
		// called.
		Trace []struct {
			Module   string `json:"module"`
			Version  string `json:"version"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "vulncheck: %v\n", err)
		os.Exit(1)
	}
}

// run expects to be called in the root of the checkout, where go.mod lies.
func run(ctx context.Context) error {
	database, err := bring(ctx)
	if err != nil {
		return err
	}
	output, err := goOutput(ctx, "run", govulncheck, "-db", "file://"+filepath.ToSlash(database), "-format", "json", "./...")
	if err != nil {
		return err
	}
	found, err := reached(bytes.NewReader(output))
	if err != nil {
		return err
	}
	refused := 0
	for _, id := range slices.Sorted(maps.Keys(found)) {
		v := found[id]
		fmt.Printf("%s %s %s (mended in %s): %s\n", id, v.module, v.version, v.fixed, v.summary)
		switch reason := accepted[id]; {
		case v.module == standard:
			fmt.Println("  of the toolchain: build with the newer Go")
		case reason != "":
			fmt.Printf("  accepted: %s\n", reason)
		default:
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d vulnerabilities of modules are reached", refused)
	}
	fmt.Println("no vulnerability of a module is reached, but for those accepted")
	return nil
}

// bring gives the folder of the newest database, made if it is not there.
func bring(ctx context.Context) (string, error) {
	text, err := goOutput(ctx, "mod", "download", "-json", vulndb+"@latest")
	if err != nil {
		return "", err
	}
	var module struct{ Version, Dir string }
	if err := json.Unmarshal(text, &module); err != nil {
		return "", err
	}
	database, err := filepath.Abs(filepath.Join(".local", "vulndb", module.Version))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(database, "index")); err == nil {
		return database, nil
	}
	// Under another name first: a database is whole or not there.
	unfinished := database + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	indexer := vulndb + "/cmd/indexdb@" + module.Version
	if _, err := goOutput(ctx, "run", indexer, "-vulns", filepath.Join(module.Dir, "data", "osv"), "-out", unfinished); err != nil {
		return "", err
	}
	return database, os.Rename(unfinished, database)
}

// vulnerability is one that the code reaches.
type vulnerability struct{ module, version, fixed, summary string }

// reached reads what govulncheck found, by ids.
func reached(output io.Reader) (map[string]vulnerability, error) {
	found := map[string]vulnerability{}
	summaries := map[string]string{}
	for decoder := json.NewDecoder(output); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of govulncheck: %w", err)
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			fixed := f.FixedVersion
			if fixed == "" {
				fixed = "no version"
			}
			found[f.OSV] = vulnerability{module: f.Trace[0].Module, version: f.Trace[0].Version, fixed: fixed}
		}
	}
	for id, v := range found {
		v.summary = summaries[id]
		found[id] = v
	}
	return found, nil
}

// goOutput runs the go command and gives its standard output.
func goOutput(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v: %w", args, err)
	}
	return output, nil
}
