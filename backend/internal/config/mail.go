package config

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/viper"

	"github.com/service-dev/service/internal/loopback"
)

func readMail(v *viper.Viper, password string) (m Mail, err error) {
	m = Mail{Host: v.GetString("smtp_host"), User: v.GetString("smtp_user"), From: v.GetString("smtp_from"),
		TLS: v.GetString("smtp_tls")}
	if m.Port, err = number(v, "smtp_port", 1, 65535); err != nil {
		return m, err
	}
	if m.Password, err = secretText(password, "smtp_password_file", v); err != nil {
		return m, err
	}
	if m.TLS != "starttls" && m.TLS != "tls" && m.TLS != "none" {
		return m, fmt.Errorf("setting smtp_tls: must be starttls, tls or none, not %q", m.TLS)
	}
	if strings.ContainsFunc(m.Host, notInHost) || strings.Contains(m.Host, ":") && net.ParseIP(m.Host) == nil {
		return m, errors.New("setting smtp_host: must be a host name or address only; set the port in smtp_port")
	}
	switch {
	case m.Host == "":
	case m.TLS == "none" && !loopback.IsHost(m.Host):
		return m, errors.New("setting smtp_tls: none is allowed only for a server on this machine")
	case m.User != "" && m.Password == "":
		return m, errors.New("setting smtp_user: a password is required, " +
			"in SERVICE_BACKEND_SMTP_PASSWORD or the file of smtp_password_file")
	case m.From == "":
		return m, errors.New("setting smtp_from: a sender is required, e.g. Service <service@example.org>")
	}
	return m, nil
}
