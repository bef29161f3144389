//: if assistant
#if canImport(CryptoKit)
import CryptoKit
#endif
#if canImport(DeviceCheck)
import DeviceCheck
#endif
//: end
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A JSON object: strings, numbers, booleans, arrays and objects.
public typealias JSONObject = [String: Any]

/// Every refusal. Branch on code; the message is for people. Codes of the glasses: bad_payload, unsupported,
/// not_connected, hinge_closed, thermal_critical, paused, permission_denied, disabled_by_user, busy, timeout and
/// platform_error; of the service: bad_frame and id_reused; of this module: not_configured, simulator_refused,
/// transport_unavailable, refused, closed and media_lost. There may be new codes. With permission_denied and
/// disabled_by_user part is camera, microphone or speech, and by permission or switch.
public struct GlassesError: Error, LocalizedError {
    public let code: String
    public let message: String
    public var part = ""
    public var by = ""
    //: if assistant
    /// Of ask: what to do next.
    public var fixHint = ""
    /// Of ask: when to ask again; 0 if waiting does not help.
    public var retryAfterMs = 0
    /// With attestation_failed: why, such as revoked.
    public var reason = ""
    //: end

    public var errorDescription: String? { message }
}

/// An event from the glasses. data is set for frames of a stream.
public struct GlassesEvent: @unchecked Sendable {
    public let type: String
    public let id: String
    public let at: Int
    public let payload: JSONObject
    public let data: Data?
}

public typealias GlassesHandler = @Sendable (GlassesEvent) async -> Void

//: if camera
/// A photo or a clip.
public struct GlassesMedia: Sendable {
    public let data: Data
    public let mime: String
    public let sha256: String
    public let width: Int
    public let height: Int
    public let durationMs: Int

    init(data: Data, described: JSONObject) {
        self.data = data
        mime = described["mime"] as? String ?? ""
        sha256 = described["sha256"] as? String ?? ""
        width = described["width"] as? Int ?? 0
        height = described["height"] as? Int ?? 0
        durationMs = described["durationMs"] as? Int ?? 0
    }
}

//: end
/// How to reach the glasses. transport is the one setting, SERVICE_GLASSES_TRANSPORT: simulator or device; by default
/// it is simulator in a DEBUG build and device in any other. url and secret come from SERVICE_GLASSES_URL and the file
/// SERVICE_GLASSES_SECRET_FILE of the environment (Xcode: the scheme), or from here.
//: if assistant
/// user is the secret of the user whom remember, memory and forget are about: 32 random lower-case hexadecimal digits,
/// such as one for each person who signs in. By default the module makes one and stores it in Application Support.
/// attestation authorises ask, converse, memory and forget if the session has no AI gateway of its own.
//: end
public struct GlassesSettings: Sendable {
    public var name: String
    public var version: String
    public var transport: String?
    public var url: String?
    //: if assistant
    public var user: String?
    public var attestation: Attestation?
    //: end
    public var secret: String?

    public init(
        name: String, version: String = "", transport: String? = nil, url: String? = nil,
        //: if assistant
        user: String? = nil, attestation: Attestation? = nil,
        //: end
        secret: String? = nil
    ) {
        self.name = name
        self.version = version
        self.transport = transport
        self.url = url
        //: if assistant
        self.user = user
        self.attestation = attestation
        //: end
        self.secret = secret
    }
}

struct GlassesTarget: Sendable {
    let url: URL
    let secret: String
    let app: [String: String]

    static var isRelease: Bool {
        #if DEBUG
        return ProcessInfo.processInfo.environment["SERVICE_RELEASE"] == "1"
        #else
        return true
        #endif
    }

    /// Decides where to attach: never to a simulator in a release build, and only by the transport that was set.
    init(_ settings: GlassesSettings) throws {
        let environment = ProcessInfo.processInfo.environment
        let release = GlassesTarget.isRelease
        let transport = settings.transport ?? environment["SERVICE_GLASSES_TRANSPORT"] ?? (release ? "device" : "simulator")
        if transport == "device" {
            throw GlassesError(code: "transport_unavailable", message: "this version of the module has no transport to real glasses; set SERVICE_GLASSES_TRANSPORT=simulator while developing")
        }
        if transport != "simulator" {
            throw GlassesError(code: "not_configured", message: "SERVICE_GLASSES_TRANSPORT is \(transport), want simulator or device")
        }
        if release {
            throw GlassesError(code: "simulator_refused", message: "a release build does not attach to a simulator")
        }
        let address = settings.url ?? environment["SERVICE_GLASSES_URL"] ?? ""
        guard let url = URL(string: address), url.scheme == "ws" || url.scheme == "wss" else {
            throw GlassesError(code: "not_configured", message: "SERVICE_GLASSES_URL is not the ws:// endpoint of a session; startLocalSimulation and createSimulatorSession return one")
        }
        self.url = url
        secret = try settings.secret ?? GlassesTarget.readSecret(environment["SERVICE_GLASSES_SECRET_FILE"])
        app = settings.version.isEmpty ? ["name": settings.name] : ["name": settings.name, "version": settings.version]
    }

    private static func readSecret(_ path: String?) throws -> String {
        guard let path = path else {
            throw GlassesError(code: "not_configured", message: "SERVICE_GLASSES_SECRET_FILE does not name the file with the session's secret")
        }
        do {
            return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
            throw GlassesError(code: "not_configured", message: "reading the session's secret: \(error.localizedDescription)")
        }
    }
}

