package product

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Labels is the content type of labels for ingest.
const Labels = "application/x-ndjson"

// Post sends a body, with a bearer token unless that is empty, and returns the answer.
func Post(ctx context.Context, client *http.Client, url, contentType, token string, body []byte) (status int,
	answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", contentType)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, bytes.TrimSpace(answer), err
}

// Metrics returns the sums of a program's metrics over all labels, by name.
func Metrics(ctx context.Context, client *http.Client, addr string) (sums map[string]float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer response.Body.Close()
	sums = map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		name := line[:strings.IndexAny(line+" ", "{ ")]
		if v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64); err == nil && name != "#" {
			sums[name] += v
		}
	}
	return sums, lines.Err()
}
