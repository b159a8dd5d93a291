"""What environments of PettingZoo, Gymnasium and Safety-Gymnasium share."""
