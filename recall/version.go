package recall

import "slices"

// checkVersion fails unless a thing has one of the versions that its change is meant
// for; none mean any.
func checkVersion(what string, version int64, meantFor []int64) error {
	if len(meantFor) == 0 || slices.Contains(meantFor, version) {
		return nil
	}
	return errorf(CodeVersionMismatch, "%s has changed since", what)
}
