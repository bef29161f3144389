-- The Lua side of an emulated Frame or Halo: a virtual machine whose time is virtual, and the frame library as the
-- firmware has it. It reads commands from standard input and writes what the device does to standard output. Each is a
-- line of words, the last of which is the length of the bytes that follow it.
--
-- Sources: brilliantlabsAR/frame-codebase, source/application/luaport.c and lua_libraries/*.c;
-- brilliantlabsAR/halo-firmware, applications/halo/PROTOCOL.md and LUA_RUNTIME.md; docs.brilliant.xyz/frame.

local io_read, io_write, io_flush, exit = io.read, io.write, io.flush, os.exit
local resume, yield, create, status, running =
  coroutine.resume, coroutine.yield, coroutine.create, coroutine.status, coroutine.running
local ceil, max, min, floor = math.ceil, math.max, math.min, math.floor
local sethook, traceback, getinfo = debug.sethook, debug.traceback, debug.getinfo
local load_chunk, rep = load, string.rep

local INSTRUCTIONS_PER_MS = 500   -- a guess for a Cortex-M4 of 64 MHz
local RUN_LIMIT = 5000            -- ms that Lua may run without frame.sleep before the emulator stops it
local MEMORY_LIMIT = 200000       -- bytes of one string; the microcontroller has 256 kB
local SLEEP = {}                  -- what a sleeping coroutine yields

local halo, hook_ms, repl_ms, notify_ms
local state = { payload = 20, connected = false, battery = 80, charging = false, address = "", jpeg = "", audio = "",
  photo_ms = 300, direction = { pitch = 0, roll = 0 }, raw = { 0, 0, 0, 0, 0, 0 } }

local now = 0        -- ms; runs ahead of the outside world while Lua computes
local started = 0    -- when Lua began to run
local free_at = 0    -- when the radio can take the next notification
local utc_offset, zone = 0, "+00:00"
local stack = {}     -- the running program, and above it the hook that interrupts it
local hook           -- the one hook of Frame: {at =, run =}
local events = {}    -- Halo's queue of them
local queued = 0     -- bytes of data in it
local repl = {}      -- lines for the REPL; Frame holds one
local on_data, on_tap, on_block, buttons
local camera, microphone
local env

local function emit_at(at, kind, payload, ...)
  local words = table.concat({ kind, ceil(at), ... }, " ")
  io_write(words, " ", #payload, "\n", payload)
end

local function emit(kind, payload, ...) emit_at(now, kind, payload, ...) end

local function violation(text) emit("violation", text) end
local function grave(text) emit("grave", text) end

-- Lua's time passes with its instructions.
local function tick()
  now = now + 1000 / INSTRUCTIONS_PER_MS
  if now - started > RUN_LIMIT + 1000 then
    emit("fatal", "Lua ran for more than 6 s without frame.sleep")
    io_flush()
    exit(1)
  elseif now - started > RUN_LIMIT then
    error("stopped after running for 5 s without frame.sleep", 0)
  end
end

-- write queues a notification, which leaves with the next event of the connection. There is room for one (bluetooth.c).
local function write(text)
  if not state.connected then return true end
  if now < free_at then return false end
  free_at = now + notify_ms
  emit_at(free_at, "notify", text)
  return true
end

local function thread(f)
  local co = create(f)
  sethook(co, tick, "", 1000)
  return co
end

local run

-- finished handles the end of the uppermost coroutine. An error in a hook is raised in what it interrupted (luaport.c,
-- bluetooth.c); the REPL writes errors to the client, and drops them while it waits.
local function finished(frame, ok, message)
  table.remove(stack)
  if ok then return end
  if frame.kind == "hook" then
    local below = stack[#stack]
    if below and not halo then run(below, tostring(message)) end
  else
    write(tostring(message))
  end
end

run = function(frame, err)
  started = now
  local ok, what, at = resume(frame.co, err)
  if status(frame.co) == "dead" then
    finished(frame, ok, what)
  elseif what == SLEEP then
    frame.wake = at
  end
end

local function push(kind, f)
  local frame = { kind = kind, co = thread(f) }
  stack[#stack + 1] = frame
  run(frame)
end

local function call(f, ...)
  local args = table.pack(...)
  push("hook", function() f(table.unpack(args, 1, args.n)) end)
end

local function interrupt(delay, do_it)
  if halo then
    events[#events + 1] = { at = now + delay, run = do_it }
  else
    hook = { at = now + delay, run = do_it }   -- displaces a hook that has not run: Lua has only one
  end
end

local function break_signal()
  local top = stack[#stack]
  if top then run(top, halo and "interrupted" or "break signal") end
end

local function chunk(text)
  local f, err = load_chunk(text, text, "t", env)
  if not f then
    write(err)
    return
  end
  push("repl", f)
end

-- due returns the time and the function of the next thing that happens.
local function due()
  local top = stack[#stack]
  local in_hook = top and top.kind == "hook"
  local at, what
  local function offer(t, f)
    if not at or t < at then at, what = t, f end
  end
  if hook and not in_hook then
    offer(hook.at, function()
      local h = hook
      hook = nil
      h.run()
    end)
  end
  if events[1] and not in_hook then
    offer(events[1].at, function() table.remove(events, 1).run() end)
  end
  if top and top.wake then
    offer(top.wake, function()
      top.wake = nil
      run(top)
    end)
  end
  if not top and repl[1] then
    offer(repl[1].at, function() table.remove(repl, 1).run() end)
  end
  return at, what
end

local function advance(to)
  while true do
    local at, what = due()
    if not at or at > to then break end
    now = max(now, at)
    what()
  end
  now = max(now, to)
end

-- The frame library ------------------------------------------------------------------------------------------------

local function integer(v, position, name)
  local n = math.tointeger(tonumber(v))
  if not n then error(("bad argument #%d to '%s' (number expected, got %s)"):format(position, name, type(v)), 3) end
  return n
end

local function text_of(v, position, name)
  if type(v) == "number" then v = tostring(v) end
  if type(v) ~= "string" then
    error(("bad argument #%d to '%s' (string expected, got %s)"):format(position, name, type(v)), 3)
  end
  return v
end

local function callback(set)
  return function(f)
    if f ~= nil and type(f) ~= "function" then error("expected nil or function", 2) end
    set(f)
  end
end

local function between(v, low, high, what)
  if v < low or v > high then error(("%s must be between %d and %d"):format(what, low, high), 3) end
  return v
end

-- The palette after a start (display.c): name, Y of 4 bits, Cb and Cr of 3 bits.
local colours = {
  { "VOID", 0, 4, 4 }, { "WHITE", 15, 4, 4 }, { "GREY", 7, 4, 4 }, { "RED", 5, 3, 6 }, { "PINK", 9, 3, 5 },
  { "DARKBROWN", 2, 2, 5 }, { "BROWN", 4, 2, 5 }, { "ORANGE", 9, 2, 5 }, { "YELLOW", 13, 2, 4 },
  { "DARKGREEN", 4, 4, 3 }, { "GREEN", 6, 2, 3 }, { "LIGHTGREEN", 10, 1, 3 }, { "NIGHTBLUE", 1, 5, 2 },
  { "SEABLUE", 4, 5, 2 }, { "SKYBLUE", 8, 5, 2 }, { "CLOUDBLUE", 13, 4, 3 },
}

local function colour_index(v)
  if halo and math.type(v) == "integer" then return between(v, 0, 15, "color_index") end
  local name = text_of(v, 1, "assign_color")
  for i, c in ipairs(colours) do
    if c[1] == name or halo and c[1] == name:upper() then return i - 1 end
  end
  error("Invalid color name", 3)
end

local function lower(v, bits) return max(0, min(255, floor(v))) >> (8 - bits) end

local display = {}

function display.assign_color_ycbcr(index, y, cb, cr)
  local i = colour_index(index)
  y = between(integer(y, 2, "assign_color_ycbcr"), 0, 15, "Y component")
  cb = between(integer(cb, 3, "assign_color_ycbcr"), 0, 7, "Cb component")
  cr = between(integer(cr, 4, "assign_color_ycbcr"), 0, 7, "Cr component")
  emit("ycbcr", "", i, y, cb, cr)
end

function display.assign_color(index, r, g, b)
  local i = colour_index(index)
  r = between(integer(r, 2, "assign_color"), 0, 255, "red component")
  g = between(integer(g, 3, "assign_color"), 0, 255, "green component")
  b = between(integer(b, 4, "assign_color"), 0, 255, "blue component")
  if halo then
    emit("rgb", "", i, r, g, b)
    return
  end
  emit("ycbcr", "", i, lower(0.299 * r + 0.587 * g + 0.114 * b, 4), lower(-0.169 * r - 0.331 * g + 0.5 * b + 128, 3),
    lower(0.5 * r - 0.419 * g - 0.081 * b + 128, 3))
end

function display.bitmap(x, y, width, format, offset, data, options)
  data = text_of(data, 6, "bitmap")
  x, y, width = integer(x, 1, "bitmap"), integer(y, 2, "bitmap"), integer(width, 3, "bitmap")
  format, offset = integer(format, 4, "bitmap"), integer(offset or halo and 0, 5, "bitmap")
  if halo then
    x, y = max(x, 1), max(y, 1)
    between(width, 1, 32767, "width")
    if options ~= nil then violation("options of bitmap are not emulated") end
  else
    between(x, 1, 640, "x_position")
    between(y, 1, 400, "y_position")
    between(width, 1, 640, "width")
  end
  if format ~= 2 and format ~= 4 and format ~= 16 and not (halo and format == 0) then
    error("total_colors must be either 2, 4 or 16", 2)
  end
  between(offset, 0, 15, "palette_offset")
  emit("bitmap", data, x - 1, y - 1, width, format, offset)
  now = now + #data / 1000   -- the FPGA's bus moves about a byte per microsecond
end

function display.text(text, x, y)
  text = text_of(text, 1, "text")
  integer(x, 2, "text")
  integer(y, 3, "text")
  if text:find("%S") then violation("text in the device's own font is not emulated") end
end

function display.show() if not halo then emit("show", "") end end

function display.power_save(on)
  if type(on) ~= "boolean" then error("value must be true or false", 2) end
  emit("power", "", on and 1 or 0)
end

local function setter(name, what)
  return function(...)
    if select("#", ...) > 0 then grave(name .. " changes what the device stores: " .. what) end
    return 50
  end
end

local function low_level(name)
  return function() violation(name .. " writes hardware registers") end
end

local function halo_display()
  function display.clear(colour) emit("clear", "", integer(colour or 0, 1, "clear")) end
  function display.rect(x, y, w, h, colour, filled)
    if not filled then violation("outlines are not emulated") return end
    emit("rect", "", max(integer(x, 1, "rect"), 1) - 1, max(integer(y, 2, "rect"), 1) - 1, integer(w, 3, "rect"),
      integer(h, 4, "rect"), integer(colour, 5, "rect"))
  end
  function display.set_pixel(x, y, colour) display.rect(x, y, 1, 1, colour, true) end
  function display.width() return 256 end
  function display.height() return 256 end
  function display.get_pan() return 0, 0 end
  display.brightness = setter("display.brightness", "brightness")
  display.set_brightness = setter("display.set_brightness", "brightness")
  display.set_pan = setter("display.set_pan", "pan")
end

local bluetooth = {}

function bluetooth.is_connected() return state.connected end
function bluetooth.address() return state.address end
function bluetooth.max_length() return state.payload - 1 end

function bluetooth.send(data)
  data = text_of(data, 1, "send")
  if #data + 1 > state.payload then error("string length is greater than max_length()", 2) end
  if halo and data == "" then return end
  if not state.connected or not write("\1" .. data) then
    now = now + 0.05
    error("bluetooth is busy", 2)
  end
end

bluetooth.receive_callback = callback(function(f) on_data = f end)

-- The camera takes a moment, then its JPEG file is read in pieces (camera.c, PROTOCOL.md 7.11).
local function new_camera()
  local c = { asleep = halo, ready_at = nil, read = 0 }
  local lib = {}
  function lib.capture(options)
    if c.asleep then error("camera is asleep", 2) end
    if type(options) ~= "table" then error("bad argument #1 to 'capture' (table expected)", 2) end
    local resolution = integer(options.resolution or (halo and 640 or 512), 1, "capture")
    if halo then
      if resolution ~= 640 then error("resolution not supported", 2) end
    elseif resolution < 100 or resolution > 720 or resolution % 2 ~= 0 then
      error("resolution value must be a multiple of 2 between 100 and 720", 2)
    end
    local quality = options.quality or "VERY_HIGH"
    if not ({ VERY_HIGH = 1, HIGH = 1, MEDIUM = 1, LOW = 1, VERY_LOW = 1 })[quality] then
      error("quality must be either VERY_HIGH, HIGH, MEDIUM, LOW or VERY_LOW", 2)
    end
    between(integer(options.pan or 0, 1, "capture"), -140, 140, "pan value")
    c.ready_at, c.read = now + state.photo_ms, 0
    emit("photo", quality, resolution)
  end
  function lib.image_ready()
    if c.asleep then error("camera is asleep", 2) end
    return c.ready_at ~= nil and now >= c.ready_at
  end
  function lib.read(n)
    n = integer(n, 1, "read")
    if n <= 0 then error("bytes must be greater than 0", 2) end
    if not c.ready_at or now < c.ready_at then
      violation("camera.read before image_ready")
      return nil
    end
    if c.read >= #state.jpeg then return nil end
    local piece = state.jpeg:sub(c.read + 1, c.read + n)
    c.read = c.read + #piece
    return piece
  end
  function lib.auto() end
  function lib.power_save(on)
    if type(on) ~= "boolean" then error("value must be true or false", 2) end
    c.asleep = on
  end
  if not halo then
    function lib.set_shutter() end
    function lib.set_gain() end
    function lib.set_white_balance() end
  end
  lib.write_register, lib.set_register = low_level("camera"), low_level("camera")
  return lib
end

-- The microphone fills a buffer in real time, from which a script reads (microphone.c, PROTOCOL.md 7.9). Samples have
-- 16 bits, the lower byte first, or their upper 8 bits.
local function new_microphone()
  local m = { on = false, depth = 8, rate = 8000, since = 0, taken = 0 }
  local lib = {}
  local function available()
    local heard = floor((now - m.since) * m.rate / 1000)
    return max(0, min(heard, #state.audio // 2) - m.taken)
  end
  function lib.start(options)
    options = options or {}
    local rate, depth = options.sample_rate or 8000, options.bit_depth or (halo and 16 or 8)
    if rate ~= 8000 and rate ~= 16000 then error("invalid sample rate", 2) end
    if depth ~= 8 and depth ~= 16 then error("invalid bit depth", 2) end
    if options.encoder == "lc3" then violation("LC3 of the microphone is not emulated") end
    m.on, m.rate, m.depth, m.since, m.taken = true, rate, depth, now, 0
    emit("microphone", "", rate, depth)
  end
  function lib.stop()
    m.on = false
    emit("microphone", "", 0, 0)
  end
  function lib.read(n)
    n = integer(n, 1, "read")
    -- brilliantlabsAR/brilliant_sdk, audio.lua, reads an even number of bytes from a Frame too
    if n <= 0 or n % 2 ~= 0 then error("bytes must be positive and even", 2) end
    between(n, 1, halo and 4096 or 512, "bytes")
    local width = m.depth // 8
    local count = min(available(), n // width)
    if count == 0 then
      if m.on then return "" end
      return nil
    end
    local from = 2 * m.taken + 1
    local bytes = state.audio:sub(from, from + 2 * count - 1)
    m.taken = m.taken + count
    if width == 2 then return bytes end
    return (bytes:gsub(".(.)", "%1"))
  end
  if halo then
    lib.gain = setter("microphone.gain", "gain")
    function lib.status() return m.on and "streaming" or "stopped" end
  end
  return lib
end

-- LZ4 blocks (compression.c): the header of the file is taken to have 7 bytes.
local function lz4_block(block, limit)
  local parts, out, i = {}, "", 1
  local function length(n)
    if n < 15 then return n end
    repeat
      local b = block:byte(i)
      i, n = i + 1, n + b
    until b ~= 255
    return n
  end
  while i <= #block do
    local token = block:byte(i)
    i = i + 1
    local n = length(token >> 4)
    out = out .. block:sub(i, i + n - 1)
    i = i + n
    if i <= #block then
      local offset = block:byte(i) | block:byte(i + 1) << 8
      i = i + 2
      n = length(token & 15) + 4
      if offset == 0 or offset > #out then return nil end
      local match = out:sub(-offset, -1)
      out = out .. rep(match, n // offset + 1):sub(1, n)
    end
    if #out > limit then return nil end
  end
  return out
end

local compression = {}
compression.process_function = callback(function(f) on_block = f end)

function compression.decompress(data, limit)
  data = text_of(data, 1, "decompress")
  limit = integer(limit, 2, "decompress")
  if limit <= 0 then error("bytes must be greater than 0", 2) end
  if halo and not on_block then error("no process_function registered", 2) end
  local i, blocks = 8, 0
  while true do
    if i + 3 > #data then error("decompression failed", 2) end
    local size = ("<I4"):unpack(data, i)
    if size == 0 then break end
    local ok, block = pcall(lz4_block, data:sub(i + 4, i + 3 + size), limit)
    if size >= 1 << 31 or i + 3 + size > #data or not ok or not block then error("decompression failed", 2) end
    i, blocks = i + 4 + size, blocks + 1
    if halo then
      on_block(block)
    else
      if #block > 4096 then violation("a decompressed block overflows the firmware's buffer of 4096 bytes") end
      if blocks > 1 then violation("a decompressed block displaces the one before it, which was not processed yet") end
      interrupt(0, function() if on_block then call(on_block, block) end end)
    end
  end
end

local function restart()
  emit("reset", "")
  for i, c in ipairs(colours) do emit("ycbcr", "", i - 1, c[2], c[3], c[4]) end
  stack, hook, events, repl, queued = {}, nil, {}, {}, 0
  on_data, on_tap, on_block, buttons = nil, nil, nil, {}
  local imu = {
    tap_callback = callback(function(f) on_tap = f end),
    direction = function() return { pitch = state.direction.pitch, roll = state.direction.roll, heading = 0.0 } end,
    raw = function()
      local r = state.raw
      return { compass = { x = r[1], y = r[2], z = r[3] }, accelerometer = { x = r[4], y = r[5], z = r[6] } }
    end,
  }
  local time = {
    utc = function(t)
      if t ~= nil then utc_offset = t - now / 1000 else return now / 1000 + utc_offset end
    end,
    zone = function(z) zone = z or zone return zone end,
    date = function() violation("time.date is not emulated") return {} end,
  }
  local frame = {
    HARDWARE_VERSION = halo and "halo" or "Frame", FIRMWARE_VERSION = halo and "0.8.20" or "v25.080.0838",
    GIT_TAG = "0000000", display = display, bluetooth = bluetooth, compression = compression, imu = imu, time = time,
    camera = new_camera(), microphone = new_microphone(),
    battery_level = function() return halo and state.battery or state.battery + 0.0 end,
    stay_awake = function() return false end,
  }
  function frame.sleep(seconds)
    if seconds == nil then
      grave("frame.sleep() switches the device off")
      emit("off", "")
      seconds = 3600
    end
    if type(seconds) ~= "number" then error("bad argument #1 to 'sleep' (number expected)", 2) end
    local err = yield(SLEEP, now + max(0, seconds) * 1000)
    if err then error(err, 0) end
  end
  if halo then
    function frame.yield() frame.sleep(0) end
    function frame.standby(seconds) frame.sleep(seconds or 3600) end
    function frame.battery_charging() return state.charging end
    frame.button = {}
    for _, kind in ipairs { "single", "double", "long" } do
      frame.button[kind] = callback(function(f) buttons[kind] = f end)
    end
  else
    display.set_brightness = function(level) between(integer(level, 1, "set_brightness"), -2, 2, "level") end
    display.write_register = low_level("display")
  end
  local forbidden = { file = "frame.file", update = "frame.update", fpga = "frame.fpga", reboot = "frame.reboot",
    ship_mode = "frame.ship_mode", light_sleep = "frame.light_sleep", charge = "frame.charge" }
  setmetatable(frame, { __index = function(_, k)
    if not forbidden[k] then return nil end
    grave(forbidden[k] .. " is forbidden")
    return setmetatable({}, { __index = function() return function() end end, __call = function() end })
  end })
  env = { assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
    pcall = pcall, rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = rawset, select = select,
    setmetatable = setmetatable, tonumber = tonumber, tostring = tostring, type = type, xpcall = xpcall,
    _VERSION = _VERSION, table = table, string = string, math = math, utf8 = utf8,
    debug = { traceback = traceback, getinfo = getinfo }, frame = frame, halo = halo and frame or nil,
    collectgarbage = function(what) return what == "count" and 40.0 or 0 end }
  env._G = env
  env.load = function(text, name, _, e) return load_chunk(text, name or text, "t", e or env) end
  -- print writes each argument by itself, and what the radio cannot take is lost (luaport.h).
  env.print = function(...)
    local words = {}
    for i = 1, select("#", ...) do
      words[i] = tostring((select(i, ...)))
      if not halo then
        if i > 1 then write("\t") end
        for at = 1, #words[i], state.payload do write(words[i]:sub(at, at + state.payload - 1)) end
      end
    end
    if halo then write((table.concat(words, "\t") .. "\n"):sub(1, state.payload)) end
  end
  local function step(co, ...)
    local r = table.pack(resume(co, ...))
    while r[1] and r[2] == SLEEP do r = table.pack(resume(co, yield(SLEEP, r[3]))) end
    return r
  end
  env.coroutine = { status = status, running = running, isyieldable = coroutine.isyieldable, close = coroutine.close,
    create = thread, yield = function(...)
      for _, f in ipairs(stack) do
        if f.co == running() then error("attempt to yield from outside a coroutine", 2) end
      end
      return yield(...)
    end,
    resume = function(co, ...)
      local r = step(co, ...)
      return table.unpack(r, 1, r.n)
    end,
    wrap = function(f)
      local co = thread(f)
      return function(...)
        local r = step(co, ...)
        if not r[1] then error(r[2], 2) end
        return table.unpack(r, 2, r.n)
      end
    end }
  setmetatable(env, { __index = function(_, k)
    if k == "os" or k == "io" or k == "package" or k == "dofile" or k == "loadfile" or k == "require" then
      grave(k .. " is forbidden")
    end
  end })
  if state.main and state.main ~= "" then chunk(state.main) end
end

string.rep = function(s, n, sep)
  if (#s + #(sep or "")) * n > MEMORY_LIMIT then error("not enough memory", 2) end
  return rep(s, n, sep)
end

-- Commands ---------------------------------------------------------------------------------------------------------

local commands = {}

function commands.data(bytes)
  if halo then
    if not on_data then return end   -- discarded
    queued = queued + #bytes + 2
    interrupt(hook_ms, function()
      queued = queued - #bytes - 2
      if on_data then call(on_data, bytes) end
    end)
    return
  end
  if not on_data then return end
  if hook and hook.data then violation("data overwrites data that Lua has not received yet") end
  interrupt(hook_ms, function() if on_data then call(on_data, bytes) end end)
  hook.data = true
end

commands["repl"] = function(text)
  if not halo then
    text = text:match("^[^\0]*")
    if repl[1] then violation("a line for the REPL overwrites one that has not run yet") end
    repl = {}
  end
  local function go()
    if not halo and text:byte() == 4 then restart() else chunk(text) end
  end
  repl[#repl + 1] = { at = now + repl_ms, run = go }
end

commands["break"] = function() interrupt(0, break_signal) end
commands["reset"] = function() restart() end

function commands.tap(kind)
  if not on_tap then return end
  interrupt(0, function() if on_tap then call(on_tap, halo and kind or nil) end end)
end

function commands.button(kind)
  if not buttons[kind] then return end
  interrupt(0, function() if buttons[kind] then call(buttons[kind]) end end)
end

function commands.set(assignment)
  local f = assert(load_chunk("local state = ...; " .. assignment, "set", "t", {}))
  f(state)
end

function commands.audio(bytes) state.audio = state.audio .. bytes end
function commands.jpeg(bytes) state.jpeg = bytes end
function commands.main(text) state.main = text end
function commands.tick() end

local function serve()
  while true do
    local line = io_read("l")
    if not line then return end
    local kind, at, length = line:match("^(%S+) (%-?%d+) (%d+)$")
    local payload = tonumber(length) > 0 and io_read(tonumber(length)) or ""
    if kind == "start" then
      local model, h, r, n = payload:match("^(%S+) (%d+) (%d+) (%d+)$")
      halo, hook_ms, repl_ms, notify_ms = model == "halo", tonumber(h), tonumber(r), tonumber(n)
      math.randomseed(1)
      if halo then halo_display() end
      restart()
    else
      advance(tonumber(at))
      commands[kind](payload)
      advance(tonumber(at))
    end
    local next_at = due()
    io_write("done ", next_at and ceil(max(next_at, tonumber(at))) or -1, " ", queued, " 0\n")
    io_flush()
  end
end

serve()
