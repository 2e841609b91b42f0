package disk

// Sync implements [Folder]. It does nothing: Windows keeps names by itself, and has no call for it.
func (d Dir) Sync() error { return nil }
