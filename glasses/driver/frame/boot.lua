-- What the driver installs in the memory of the glasses; nothing is stored in a file. Each line is one command for the
-- REPL, so it must be complete and at most as long as the smallest MTU allows. Lines like these are not sent.
S={q={},f={},n=0,p=999,r=999,d=frame.display,b=frame.bluetooth,m=frame.microphone,c=frame.camera}
S.halo=frame.HARDWARE_VERSION=='halo'
-- Notifications: there is room for one in the radio, so what it does not take waits in q.
function S.put(t) if S.q[1] or not pcall(S.b.send,t) then S.q[#S.q+1]=t end end
function S.flush() while S.q[1] and pcall(S.b.send,S.q[1]) do table.remove(S.q,1) end return not S.q[1] end
-- Data: a sequence number, an operation and its arguments. A repeated number is only acknowledged.
function S.run(s,o,t) if s==S.s then return true end local ok=pcall(S.f[o],t) if ok then S.s=s end return ok end
function S.receive(t) local s,o=t:byte(1,2) S.put('A'..string.char(s,S.run(s,o,t) and 0 or 1)) end
-- The panel. b begins a dark picture, t draws a tile, s shows the picture.
S.f[98]=function() for y=1,361,40 do S.d.bitmap(1,y,640,2,0,string.rep('\0',3200)) end end
if S.halo then S.f[98]=function() S.d.clear(0) end end
function S.colours(t,i,k) for n=1,k-1 do S.d.assign_color(n,t:byte(i+3*n,i+3*n+2)) end end
function S.ground(t,x,y,w,h,i) S.d.rect(x,y,w,h,string.unpack('>I3',t,i),true) end
function S.place(t) return string.unpack('>HHHHBB',t,3) end
S.f[116]=function(t) local x,y,w,h,n,o,i=S.place(t) S.d.bitmap(x,y,w,n,o,t:sub(i)) end
function S.index(t,x,y,w,h,n,k,i) S.ground(t,x,y,w,h,i) S.colours(t,i,k) S.d.bitmap(x,y,w,n,0,t:sub(i+3*k)) end
function S.tile(t,x,y,w,h,n,k,i) if n>0 then S.index(t,x,y,w,h,n,k,i) else S.d.bitmap(x,y,w,0,0,t:sub(i)) end end
if S.halo then S.f[116]=function(t) S.tile(t,S.place(t)) end end
S.f[115]=function() S.d.show() end
function S.dark() S.f[98]() S.d.show() end
-- The palette of a Frame.
function S.palette(t) for n,r,g,b in t:gmatch('(%u+) (%d+) (%d+) (%d+)') do S.d.assign_color(n,r,g,b) end end
if not S.halo then S.palette('VOID 0 0 0 WHITE 255 255 255 GREY 157 157 157 RED 190 38 51 PINK 224 111 139') end
if not S.halo then S.palette('DARKBROWN 73 60 43 BROWN 164 100 34 ORANGE 235 137 49 YELLOW 247 226 107') end
if not S.halo then S.palette('DARKGREEN 47 72 78 GREEN 68 137 26 LIGHTGREEN 163 206 39') end
if not S.halo then S.palette('NIGHTBLUE 27 38 50 SEABLUE 0 87 132 SKYBLUE 49 162 242 CLOUDBLUE 178 220 239') end
-- The wearer: T for a tap and K for the button, with the first letter of their kind.
function S.touch(t,k) if #S.q<9 then S.put(t..k:sub(1,1)) end end
frame.imu.tap_callback(function(k) S.touch('T',k or 'single') end)
function S.button(k) frame.button[k](function() S.touch('K',k) end) end
if S.halo then S.button('single') S.button('double') S.button('long') end
-- The battery: percent and whether it charges.
function S.level() return math.floor(frame.battery_level()),S.halo and frame.battery_charging() and 1 or 0 end
function S.battery() S.put('B'..string.char(S.level())) end
-- The direction of the head, in tenths of a degree, when it has changed by one degree.
function S.turned(p,r) return math.abs(p-S.p)+math.abs(r-S.r)>=10 end
function S.turn(p,r) if S.turned(p,r) then S.p,S.r=p,r S.put('I'..string.pack('>hh',p,r)) end end
function S.motion() local d=frame.imu.direction() S.turn(math.floor(d.pitch*10),math.floor(d.roll*10)) end
-- The microphone: m switches it. Sound goes in pieces with a sequence number.
S.f[109]=function(t) S.mic=nil S.k=0 local d=t:byte(3) if d>0 then S.listen(d) else S.m.stop() end end
function S.listen(d) S.m.start{sample_rate=8000,bit_depth=d} S.mic=true end
function S.sound(t) if t and #t>0 then S.put('M'..string.char(S.k)..t) S.k=S.k+1&255 end end
function S.hear() S.sound(S.m.read((S.b.max_length()-2)//4*4)) end
-- The camera: p takes a picture of a width, after the given rounds of the automatic exposure.
S.f[112]=function(t) S.w,S.a=string.unpack('>HB',t,3) S.photo=nil if S.halo then S.c.power_save(false) end end
function S.aim() S.a=S.a-1 pcall(S.c.auto,{}) if S.a<=0 then S.a=nil S.shoot() end end
function S.shoot() S.c.capture{resolution=S.w,quality='MEDIUM'} S.photo=0 end
function S.develop() if S.c.image_ready() then S.piece(S.c.read((S.b.max_length()-2)//4*4)) end end
function S.piece(t) S.put((t and 'P' or 'E')..string.char(S.photo)..(t or '')) S.photo=t and S.photo+1&255 end
-- The program. It ends when the connection does, with a dark panel.
function S.slow() pcall(S.motion) if S.a then pcall(S.aim) end if S.n%6000==0 then pcall(S.battery) end end
function S.send() if S.mic and S.n%5==0 then pcall(S.hear) elseif S.photo then pcall(S.develop) end end
function S.step() S.n=S.n+1 if S.flush() then S.send() end if S.n%20==0 then S.slow() end end
function S.loop() while S.b.is_connected() do S.step() frame.sleep(.005) end S.dark() end
function S.stop() pcall(S.m.stop) S.b.receive_callback(nil) frame.imu.tap_callback(nil) end
pcall(S.d.power_save,false) pcall(S.m.stop)
S.b.receive_callback(S.receive)
