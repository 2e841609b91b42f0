package cli

import "time"

// Since returns the time that --since names: a duration before now, such as 24h, or a time of
// RFC 3339. An empty value is the zero time.
func Since(value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t, nil
	}
	return time.Time{}, Usagef("--since: %q is neither a duration such as 24h nor a time such as 2026-11-20T10:00:00Z", value)
}
