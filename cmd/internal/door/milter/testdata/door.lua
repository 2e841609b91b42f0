-- Asks the door as a mail server does:
-- miltertest -D socket=inet:PORT@127.0.0.1 -D "text=This message …" -s door.lua
local function must(ok, what) if not ok then error(what) end end

-- message sends one message with two forged fields and returns what the end was
-- answered with.
local function message(conn, recipient)
	must(mt.mailfrom(conn, "ann@example.com") == nil, "mailfrom")
	must(mt.rcptto(conn, recipient) == nil, "rcptto")
	mt.macro(conn, SMFIC_RCPT, "i", "queue-id")
	if not mt.test_option(conn, SMFIP_NODATA) then must(mt.data(conn) == nil, "data") end
	must(mt.header(conn, "X-Hamlet", "ham") == nil, "forged field")
	must(mt.header(conn, "Subject", "news") == nil, "subject")
	must(mt.header(conn, "x-hamlet", "ham") == nil, "forged field")
	must(mt.eoh(conn) == nil, "eoh")
	must(mt.bodystring(conn, "Hello.\r\n") == nil, "body")
	must(mt.bodyrandom(conn, 100000) == nil, "large body")
	must(mt.eom(conn) == nil, "eom")
	must(not mt.eom_check(conn, MT_BODYCHANGE), "the body is changed")
	return mt.getreply(conn)
end

-- session holds a whole connection, where the mail server offers these steps.
local function session(version, actions, steps)
	local conn = mt.connect(socket, 20, 0.1)
	must(conn, "connect")
	must(mt.negotiate(conn, version, actions, steps) == nil, "negotiate")
	must(mt.test_action(conn, SMFIF_CHGHDRS) and mt.test_action(conn, SMFIF_ADDHDRS), "actions")
	must(not mt.test_action(conn, SMFIF_CHGBODY), "it wants to change the body")

	must(mt.test_option(conn, SMFIP_NOCONNECT) or mt.conninfo(conn, "localhost", "127.0.0.1") == nil, "conninfo")
	must(mt.test_option(conn, SMFIP_NOHELO) or mt.helo(conn, "localhost") == nil, "helo")
	must(mt.test_option(conn, SMFIP_NOUNKNOWN) or mt.unknown(conn, "FOO") == nil, "unknown")

	-- A message that is void.
	must(mt.mailfrom(conn, "ann@example.com") == nil, "mailfrom")
	must(mt.rcptto(conn, "spam@example.com") == nil, "rcptto")
	must(mt.header(conn, "X-Hamlet", "ham") == nil, "header")
	must(mt.abort(conn) == nil, "abort")

	must(message(conn, "<ham@example.com>") == SMFIR_ACCEPT, "ham is not accepted")
	must(mt.eom_check(conn, MT_HDRDELETE, "x-hamlet"), "forged fields stay")
	must(mt.eom_check(conn, MT_HDRINSERT, "X-Hamlet"), "ham has no field")
	must(not mt.eom_check(conn, MT_QUARANTINE), "ham is held")

	must(message(conn, "<hold@example.com>") == SMFIR_ACCEPT, "spam is not accepted")
	must(mt.eom_check(conn, MT_QUARANTINE), "spam is not held")
	must(mt.eom_check(conn, MT_HDRCHANGE, "Subject"), "spam has no tag")

	must(message(conn, "<spam@example.com>") == SMFIR_REPLYCODE, "spam is not refused")
	must(mt.eom_check(conn, MT_SMTPREPLY, "550", "5.7.1", text), "spam is refused in another way")
	must(not mt.eom_check(conn, MT_HDRINSERT), "refused spam has a field")
	mt.disconnect(conn)
end

-- miltertest does not print errors.
for _, offer in ipairs({{6, 0x1ff, 0x1fffff}, {2, 0x3f, 0x7f}, {}}) do
	local ok, err = pcall(session, offer[1], offer[2], offer[3])
	if not ok then
		mt.echo("offered " .. tostring(offer[1]) .. ": " .. tostring(err))
		error(err)
	end
end
