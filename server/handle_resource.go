package server

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

const resourceIDParam = "resourceId"

// getResource says what is held of a resource.
func (a api) getResource(c echo.Context) error {
	id, err := a.resourceID(c)
	if err != nil {
		return err
	}
	holdings, err := a.memory.Resource(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return respond(c, appendHoldings(nil, holdings))
}

// eraseResource removes all that is held of a resource, and gives a receipt.
func (a api) eraseResource(c echo.Context) error {
	id, err := a.resourceID(c)
	if err != nil {
		return err
	}
	receipt, err := a.memory.EraseResource(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return respond(c, appendReceipt(nil, receipt))
}

// resourceID reads the resource of the path, for routes that know no parameters.
func (a api) resourceID(c echo.Context) (string, error) {
	id, err := pathID(c, resourceIDParam)
	if err != nil {
		return "", err
	}
	return id, a.readQuery(c).faults.err()
}

func appendHoldings(b []byte, h recall.Holdings) []byte {
	b = appendText(append(b, `{"resourceId":`...), h.ResourceID)
	b = appendCounts(append(b, `,"counts":`...), h.Counts)
	b = appendTimeOrNull(append(b, `,"firstActivityAt":`...), h.FirstActivityAt)
	b = appendTimeOrNull(append(b, `,"lastActivityAt":`...), h.LastActivityAt)
	return append(b, '}')
}

func appendReceipt(b []byte, r recall.Receipt) []byte {
	b = appendText(append(b, `{"resourceId":`...), r.ResourceID)
	b = appendTime(append(b, `,"erasedAt":`...), r.ErasedAt)
	b = appendCounts(append(b, `,"counts":`...), r.Counts)
	return append(b, '}')
}

func appendCounts(b []byte, c recall.Counts) []byte {
	b = strconv.AppendInt(append(b, `{"threads":`...), c.Threads, 10)
	b = strconv.AppendInt(append(b, `,"messages":`...), c.Messages, 10)
	b = strconv.AppendInt(append(b, `,"vectors":`...), c.Vectors, 10)
	b = strconv.AppendInt(append(b, `,"workingMemory":`...), c.WorkingMemory, 10)
	b = strconv.AppendInt(append(b, `,"versions":`...), c.Versions, 10)
	b = strconv.AppendInt(append(b, `,"jobs":`...), c.Jobs, 10)
	b = strconv.AppendInt(append(b, `,"idempotencyKeys":`...), c.IdempotencyKeys, 10)
	return append(b, '}')
}
